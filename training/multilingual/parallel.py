"""Reads the pairs that `training.multilingual.collect` gathered."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Translated:
    """A text with its English translation; kind: `text`, or `word` for an entry of a dictionary."""

    text: str
    english: str
    kind: str
    source: str


def read_parallel(data: Path, language: str) -> Iterator[Translated]:
    """The pairs of a language, in the order of the file."""
    with gzip.open(data / "parallel" / f"{language}.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            yield Translated(pair["query"], pair["pos"][0], pair["kind"], pair["source"])
