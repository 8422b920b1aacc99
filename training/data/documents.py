"""Documents for training from JSON lines or plain text, and the pairs that can be made of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tercet.training.data.pairs import TrainingPair, numbered_lines, parse_object, passages
from tercet.training.errors import TrainingDataError

PLAIN_SUFFIXES = (".txt", ".txt.gz")
# Words of a span; long spans teach to find what matters in a query of several sentences.
SHORTEST_SPAN, LONGEST_SPAN = 4, 96
LEAST_REST_WORDS = 12
# How often the span stays in the passage, so that exact matches count, too (Lee et al. 2019, section 3).
KEPT_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TrainingText:
    """A document: its title, empty where it has none, and its text."""

    title: str
    text: str


def read_texts(path: Path, span: Sequence[int] = (), language: str | None = None) -> Iterator[TrainingText]:
    """Documents of a file, in order: JSON lines `{"text", "title"?, "lang"?}`, the positives of training
    pairs, or plain text (`.txt`), one a line.

    span: first and last line that are taken; language: only documents whose `language_of` is this.
    Raises TrainingDataError naming file and line.
    """
    plain = path.name.endswith(PLAIN_SUFFIXES)
    for line, where in numbered_lines(path, span):
        if plain:
            yield TrainingText("", line.strip())
            continue
        value = parse_object(line, where, '"text"')
        if language is not None and language_of(value) != language:
            continue
        if "pos" in value:
            yield from (TrainingText("", passage) for passage in passages(value["pos"], "pos", where))
        else:
            yield text_of(value, where)


def text_of(value: dict[str, object], where: str) -> TrainingText:
    """The document in a JSON object."""
    title, text = value.get("title") or "", value.get("text")
    if not isinstance(text, str) or not text.strip():
        raise TrainingDataError(f'{where}: "text" must be a text that is not empty')
    if not isinstance(title, str):
        raise TrainingDataError(f'{where}: "title" must be a text')
    return TrainingText(title, text)


def language_of(value: dict[str, object]) -> object:
    """The `lang` of a JSON object or, where it has none, of its metadata, as documents of collections do."""
    metadata = value.get("metadata")
    if "lang" not in value and isinstance(metadata, dict):
        return metadata.get("lang")
    return value.get("lang")


def title_pairs(texts: Iterator[TrainingText]) -> Iterator[TrainingPair]:
    """Title and text of every document that has a title."""
    for document in texts:
        if document.title.strip():
            yield TrainingPair(document.title, (document.text,), ())


def repeated_pairs(texts: Iterator[TrainingText]) -> Iterator[TrainingPair]:
    """Every text with itself, which dropout lets the encoder see in two ways (SimCSE, Gao et al. 2021,
    arXiv 2104.08821, section 3).
    """
    return (TrainingPair(document.text, (document.text,), ()) for document in texts)


def span_pairs(texts: Iterator[TrainingText], seed: int) -> Iterator[TrainingPair]:
    """A random span of every document long enough, and the rest of it; words are what white space divides."""
    choose = random.Random(seed)  # noqa: S311  # reproducible spans, no secret
    for document in texts:
        words = document.text.split()
        longest = min(LONGEST_SPAN, len(words) - LEAST_REST_WORDS)
        if longest < SHORTEST_SPAN:
            continue
        length = choose.randint(SHORTEST_SPAN, longest)
        start = choose.randint(0, len(words) - length)
        kept = choose.random() < KEPT_SHARE
        rest = words if kept else words[:start] + words[start + length :]
        yield TrainingPair(" ".join(words[start : start + length]), (" ".join(rest),), ())
