"""Training pairs from JSON lines in FlagEmbedding's form.

`{"query", "pos": [...], "neg": [...]?, "pos_scores": [...]?, "neg_scores": [...]?, "prompt"?}`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from tercet.index.wording import reason_of, shown
from tercet.training.errors import TrainingDataError

KEYS = ("query", "pos", "neg", "pos_scores", "neg_scores", "prompt")
"""All keys that a line of training pairs may have."""
LARGEST_SCORE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class TrainingPair:
    """A query with the passages that answer it and, where the file has them, passages that do not.

    prompt: what stands before the query. scores: a teacher's, of the positives and then of the negatives;
    empty where the line has none or the run does not learn them.
    """

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    prompt: str = ""
    scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LineRules:
    """What a run makes of the keys that a line of training pairs may have beside its texts.

    scores: whether it learns a teacher's scores; None where its settings do not say, so that a line with
    scores is refused. query_instruction: what the encoder puts before every query; no other prompt is
    accepted then.
    """

    scores: bool | None = None
    query_instruction: str = ""


TEXTS_ALONE = LineRules()
ANY_LINE = LineRules(scores=False)
"""Of whoever reads texts alone: scores and prompts are let through."""


def read_pairs(
    path: Path, span: Sequence[int] = (), rules: LineRules = TEXTS_ALONE
) -> Iterator[TrainingPair]:
    """The pairs of a `.jsonl` or `.jsonl.gz` file, in file order.

    span: first and last line that are taken. Raises TrainingDataError naming file and line number.
    """
    for line, where in numbered_lines(path, span):
        yield parse_pair(line, where, rules)


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


def parse_pair(line: str, where: str, rules: LineRules) -> TrainingPair:
    """One line as a pair; `where` is the file and line number for messages."""
    value = parse_object(line, where, '"query" and "pos"')
    unknown = next((key for key in value if key not in KEYS), None)
    if unknown is not None:
        raise TrainingDataError(
            f"{where}: {shown(unknown)} is no key of training pairs; known are {', '.join(KEYS)}"
        )
    query = value.get("query")
    if not isinstance(query, str) or not query.strip():
        raise TrainingDataError(f'{where}: "query" must be a text that is not empty')
    positives = passages(value.get("pos"), "pos", where)
    if not positives:
        raise TrainingDataError(f'{where}: "pos" must hold at least one passage')
    negatives = passages(value.get("neg", []), "neg", where)
    scores = line_scores(value, len(positives), len(negatives), where, rules)
    return TrainingPair(query, positives, negatives, line_prompt(value, where, rules), scores)


def line_scores(
    value: dict[str, object], positives: int, negatives: int, where: str, rules: LineRules
) -> tuple[float, ...]:
    """The teacher's scores of a line with so many positives and negatives; none where they are not learned.

    Raises TrainingDataError where a passage has none though others do.
    """
    given = next((key for key in ("pos_scores", "neg_scores") if key in value), None)
    if given is None:
        return ()
    if rules.scores is None:
        raise TrainingDataError(
            f'{where}: "{given}" is not used by this run; give losses.teacher_scores a factor to learn such '
            "scores, or 0 to leave them out"
        )
    scores = [
        *passage_scores(value.get("pos_scores", []), positives, "pos", where),
        *passage_scores(value.get("neg_scores", []), negatives, "neg", where),
    ]
    return tuple(scores) if rules.scores else ()


def passage_scores(value: object, count: int, key: str, where: str) -> list[float]:
    """A list of finite numbers, one for each of the `count` passages of a key."""
    if not isinstance(value, list) or not all(map(is_score, value)):
        raise TrainingDataError(f'{where}: "{key}_scores" must be a list of finite numbers')
    if len(value) != count:
        raise TrainingDataError(
            f'{where}: "{key}_scores" must hold a number for each passage of "{key}", '
            f"but has {len(value)} for {count}"
        )
    return [float(v) for v in value]


def is_score(value: object) -> bool:
    """Whether a value is a number that float32 can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_SCORE


def line_prompt(value: dict[str, object], where: str, rules: LineRules) -> str:
    """What is put before the query of a line, beside what the encoder itself puts there."""
    prompt = value.get("prompt", "")
    if not isinstance(prompt, str):
        raise TrainingDataError(f'{where}: "prompt" must be a text')
    if not rules.query_instruction:
        return prompt
    if prompt not in ("", rules.query_instruction):
        raise TrainingDataError(
            f'{where}: "prompt" is {shown(prompt)}, but the encoder puts {shown(rules.query_instruction)} '
            'before every query; set encoder.query_instruction = "" to train with prompts of lines'
        )
    return ""


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
        replace(pair, positives=tuple(dict.fromkeys(joined[p] for p in pair.positives))) for pair in pairs
    ]


def json_line(value: object) -> str:
    """A value as one line of JSON. Half a surrogate pair, which no file in UTF-8 has, stays escaped."""
    line = json.dumps(value, ensure_ascii=False)
    return line if is_unicode(line) else json.dumps(value)


def text_digest(text: str) -> str:
    """A digest of a text, hexadecimal."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


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
