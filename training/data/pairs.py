"""Training pairs from JSON lines `{"query", "pos": [...], "neg": [...]?}`."""

from __future__ import annotations

import gzip
import json
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from tercet.index.wording import reason_of
from tercet.training.errors import TrainingDataError


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A query with the passages that answer it and, where the file has them, passages that do not."""

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]


def read_pairs(path: Path, span: Sequence[int] = ()) -> Iterator[TrainingPair]:
    """The pairs of a `.jsonl` or `.jsonl.gz` file, in file order.

    span: first and last line that are taken. Raises TrainingDataError naming file and line number.
    """
    for line, where in numbered_lines(path, span):
        yield parse_pair(line, where)


def numbered_lines(path: Path, span: Sequence[int] = ()) -> Iterator[tuple[str, str]]:
    """Lines that are not blank, with file and line number for messages; `.gz` is unpacked.

    span: first and last line that are taken. Raises TrainingDataError where the file cannot be read.
    """
    first, last = span or (1, None)
    try:
        with opened(path) as lines:
            for number, line in enumerate(islice(lines, first - 1, last), start=first):
                if not (line.isascii() or is_unicode(line)):
                    raise TrainingDataError(f"{path}:{number}: not UTF-8")
                if line.strip():
                    yield line, f"{path}:{number}"
    except (OSError, EOFError, zlib.error) as error:
        raise TrainingDataError(f"{path}: cannot be read: {reason_of(error)}") from error


def opened(path: Path) -> IO[str]:
    """The file's text, unpacked where its name ends in `.gz`; a byte that is no UTF-8 is a lone surrogate."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", errors="surrogateescape")
    return path.open(encoding="utf-8", errors="surrogateescape")


def is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def parse_pair(line: str, where: str) -> TrainingPair:
    """One line as a pair; `where` is the file and line number for messages."""
    value = parse_object(line, where, '"query" and "pos"')
    query = value.get("query")
    if not isinstance(query, str) or not query.strip():
        raise TrainingDataError(f'{where}: "query" must be a text that is not empty')
    positives = passages(value.get("pos"), "pos", where)
    if not positives:
        raise TrainingDataError(f'{where}: "pos" must hold at least one passage')
    return TrainingPair(query, positives, passages(value.get("neg", []), "neg", where))


def parse_object(line: str, where: str, keys: str) -> dict[str, object]:
    """The JSON object of a line; `keys` says, for messages, what it should hold."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TrainingDataError(f"{where}: not JSON: {error}") from error
    if not isinstance(value, dict):
        raise TrainingDataError(f"{where}: expected an object with {keys}")
    return value


def passages(value: object, key: str, where: str) -> tuple[str, ...]:
    """A list of texts that are not empty."""
    if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
        raise TrainingDataError(f'{where}: "{key}" must be a list of texts that are not empty')
    return tuple(value)


def joined_neighbours(pairs: Sequence[TrainingPair], up_to: int, seed: int) -> list[TrainingPair]:
    """The pairs with neighbouring positives of the file joined, in groups of 1 to `up_to` passages.

    Makes passages of several sentences where a file has single ones in the order of their text; sizes are
    random, so that the heads learn to compare passages of different lengths.
    """
    distinct = list(dict.fromkeys(passage for pair in pairs for passage in pair.positives))
    sizes = random.Random(seed)  # noqa: S311  # reproducible sizes, no secret
    joined: dict[str, str] = {}
    start = 0
    while start < len(distinct):
        group = distinct[start : start + sizes.randint(1, up_to)]
        joined.update(dict.fromkeys(group, " ".join(group)))
        start += len(group)
    return [
        TrainingPair(pair.query, tuple(dict.fromkeys(joined[p] for p in pair.positives)), pair.negatives)
        for pair in pairs
    ]


def letters(text: str) -> str:
    """Letters and digits of a text, in lower case."""
    return re.sub(r"[\W_]+", "", text.lower())


def passages_of(folder: Path) -> Iterator[str]:
    """Title and text of each document of a BEIR folder, from `corpus.jsonl.gz` or `corpus.jsonl`."""
    path = next((p for p in (folder / "corpus.jsonl.gz", folder / "corpus.jsonl") if p.is_file()), None)
    if path is None:
        raise TrainingDataError(f"{folder}: neither corpus.jsonl.gz nor corpus.jsonl is there")
    for line, where in numbered_lines(path):
        value = parse_object(line, where, '"text"')
        if not isinstance(value.get("text"), str):
            raise TrainingDataError(f'{where}: expected an object with "text"')
        yield f"{value.get('title') or ''}\n{value['text']}".strip()
