"""Lines of training pairs from several files, and what becomes of each pair of a query and a positive."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tercet.training.data.pairs import ANY_LINE, TrainingPair, numbered_lines, parse_pair

Reason = Literal[
    "query_length", "passage_length", "contained", "near_duplicate", "low_score", "not_found_again"
]
"""Why a pair is left out, in the order in which the filters are applied."""
REASONS: tuple[Reason, ...] = get_args(Reason)


@dataclass(frozen=True, slots=True)
class PairLine:
    """One line. where: file and line number; first: the number of its first positive among those of all lines
    that are read.
    """

    where: str
    text: str
    pair: TrainingPair
    first: int

    @property
    def numbered(self) -> Iterator[tuple[int, str]]:
        """Number and text of each positive."""
        return enumerate(self.pair.positives, start=self.first)


def read_lines(paths: Sequence[Path]) -> Iterator[PairLine]:
    """The lines of all files, in order. Raises TrainingDataError naming file and line."""
    first = 0
    for path in paths:
        for line, where in numbered_lines(path):
            pair = parse_pair(line, where, ANY_LINE)
            yield PairLine(where, line, pair, first)
            first += len(pair.positives)


class Verdicts:
    """Which pairs are kept, by their numbers; else why not: 9 bytes a pair, whatever the texts are."""

    def __init__(self) -> None:
        self._reasons = bytearray()
        self._details = array("d")

    def __len__(self) -> int:
        return len(self._reasons)

    def add(self) -> None:
        """One more pair, which is kept."""
        self._reasons.append(0)
        self._details.append(0)

    def drop(self, pair: int, reason: Reason, detail: float) -> None:
        """A pair is left out. detail: what it has instead, such as its length or its score."""
        self._reasons[pair] = 1 + REASONS.index(reason)
        self._details[pair] = detail

    def keeps(self, pair: int) -> bool:
        """Whether a pair is not left out."""
        return not self._reasons[pair]

    def dropped(self, pair: int) -> tuple[Reason, float]:
        """Why a pair is left out, and what it has instead."""
        return REASONS[self._reasons[pair] - 1], self._details[pair]

    def kept(self, line: PairLine) -> list[tuple[int, str]]:
        """Number and text of each positive of a line that is not left out."""
        return [(number, text) for number, text in line.numbered if self.keeps(number)]

    def counts(self) -> dict[Reason, int]:
        """How many pairs each filter left out."""
        counts = Counter(self._reasons)
        return {reason: counts[number] for number, reason in enumerate(REASONS, start=1)}
