"""The counts of all terms over a collection's documents, which are counted once and then follow its writes.

With idf(t) = ln(N + 1) - ln(n(t) + 1/2), the mean m of `idf.py` is ln(N + 1) less the sum of
M(t) ln(n(t) + 1/2) over that of M(t). A write changes both sums by what its own terms change. Each term's
part has a fixed number of binary places, so that sums depend neither on the order of writes nor on how
documents lie in segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.native.kernels import add_statistics
from tercet.index.sparse.term_statistics import TermStatistics, units_of
from tercet.models.representations import Int32, Int64, SparseRows

TermCounts = tuple[Int64, Int64]
"""n(t) and M(t) of all V terms: int64[V] each."""

PLACES = 32  # binary ones of each term's part of the sum of logarithms


@dataclass(frozen=True, slots=True)
class TermChange:
    """What a write does to terms: the lexical rows of documents that came, and of those that went."""

    added: SparseRows
    removed: tuple[SparseRows, ...]

    @property
    def weights(self) -> int:
        """How many weights all rows have."""
        return len(self.added.weights) + sum(len(rows.weights) for rows in self.removed)

    def counted(self) -> tuple[Int32, Int64, Int64]:
        """The terms int32[X], ascending, with what it adds to n and M of each, int64[X] both."""
        ids = np.concatenate([self.added.token_ids, *(rows.token_ids for rows in self.removed)])
        units = [units_of(self.added.weights), *(-units_of(rows.weights) for rows in self.removed)]
        signs = np.ones(len(ids), np.int64)
        signs[len(self.added.token_ids) :] = -1
        terms, indices = np.unique(ids, return_inverse=True)
        frequencies, masses = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
        np.add.at(frequencies, indices, signs)
        np.add.at(masses, indices, np.concatenate(units))
        return terms, frequencies, masses


@dataclass(frozen=True, slots=True)
class TermSums:
    """Over all terms: mass, the sum of M(t); logs, that of M(t) ln(n(t) + 1/2), times 2^PLACES."""

    mass: int
    logs: int

    def mean_idf(self, documents: int) -> float | None:
        """m of so many documents; None where there is no mass."""
        return float(np.log1p(documents)) - self.logs / (self.mass << PLACES) if self.mass else None


class TermTotals:
    """n(t) and M(t) of all V terms: int64[V] both, changed in place; and their sums."""

    def __init__(self, segments: Sequence[TermStatistics], vocabulary_size: int) -> None:
        self._frequencies, self._masses = (np.zeros(vocabulary_size, np.int64) for _ in range(2))
        for segment in segments:
            add_statistics(
                segment.terms, segment.frequencies, segment.masses, self._frequencies, self._masses
            )
        there = np.flatnonzero(self._masses)
        self.sums = TermSums(
            _exact_sum(self._masses), _sum_of_logs(self._frequencies[there], self._masses[there])
        )

    def counts(self) -> TermCounts:
        """Copies of both."""
        return self._frequencies.copy(), self._masses.copy()

    def changed(self, terms: Int32, frequencies: Int64, masses: Int64) -> TermTotals:
        """Those after a change, beside these."""
        later = TermTotals.__new__(TermTotals)
        later._frequencies, later._masses = self.counts()
        later.sums = self.sums
        later.apply(terms, frequencies, masses)
        return later

    def frequencies(self, terms: Int32) -> Int64:
        """n of some terms."""
        return self._frequencies[terms]

    def apply(self, terms: Int32, frequencies: Int64, masses: Int64) -> None:
        """Adds what a change has counted."""
        before = _sum_of_logs(self._frequencies[terms], self._masses[terms])
        self._frequencies[terms] += frequencies
        self._masses[terms] += masses
        after = _sum_of_logs(self._frequencies[terms], self._masses[terms])
        self.sums = TermSums(self.sums.mass + _exact_sum(masses), self.sums.logs + after - before)


def _sum_of_logs(frequencies: Int64, masses: Int64) -> int:
    """The sum of M ln(n + 1/2), each part cut behind PLACES."""
    parts = masses * np.log(frequencies + 0.5)
    whole = np.floor(parts)
    rest = ((parts - whole) * 2**PLACES).astype(np.int64)
    return (_exact_sum(whole.astype(np.int64)) << PLACES) + _exact_sum(rest)


def _exact_sum(values: Int64) -> int:
    """The sum, which may be larger than an int64."""
    low = np.bitwise_and(values, 0xFFFFFFFF)
    return (int((values >> 32).sum()) << 32) + int(low.sum())
