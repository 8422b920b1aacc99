"""What all shards together know of terms and words, kept between searches by the states of the shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tercet.index.bm25.query import WordCounts
from tercet.index.sparse.idf import factors_of
from tercet.index.sparse.term_totals import TermCounts, TermTotals
from tercet.models.representations import Float64, Int32, Int64
from tercet.service.shard.records import TermReport

MOST_WORDS = 100_000  # whose counts are kept
VERSIONS = ","  # between those of shards

TermChange = tuple[Int32, Int64, Int64]
"""Terms int32[X], and what is added to n(t) and M(t) of each, int64[X] both."""


def sound(report: TermReport, vocabulary_size: int) -> TermReport:
    """What a shard told. Raises ValueError where that is of terms that there are none of."""
    terms, *_ = report.added
    if len(terms) and not (terms.min() >= 0 and terms.max() < vocabulary_size):
        raise ValueError("a term is outside the vocabulary")
    return report


@dataclass(slots=True)
class KnownWords:
    """How many documents of all shards have each of some words: counts, by word; documents, total_length: of
    all shards, None until one was asked for. Any number of threads may use it.
    """

    documents: int = 0
    total_length: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    def of(self, words: Sequence[str]) -> WordCounts | None:
        """What is known of words; None where one was never asked for."""
        counts = [self.counts.get(word) for word in words]
        known = [count for count in counts if count is not None]
        if not self.counts or len(known) < len(words):
            return None
        return WordCounts(self.documents, self.total_length, np.array(known, np.int64))

    def keep(self, words: Sequence[str], counts: WordCounts) -> None:
        """Keeps what all shards told of words."""
        if len(self.counts) < MOST_WORDS:
            self.documents, self.total_length = counts.documents, counts.total_length
            self.counts |= zip(words, counts.frequencies.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """What a shard told at a state, None where it was never heard. counts: n(t) and M(t) of all terms, where
    they are kept for another server of the shard, which may be at another state.
    """

    state: str | None = None
    version: str = ""
    documents: int = 0
    counts: TermCounts | None = None


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """What shards told at certain states; totals: the counts of terms of all of them, None where there is no
    idf.
    """

    shards: tuple[ShardTerms, ...]
    totals: TermTotals | None
    words: KnownWords

    @staticmethod
    def nothing(shards: int, totals: TermTotals | None) -> KnownTerms:
        """Before any shard was heard. totals: of no documents; None where there is no idf."""
        return KnownTerms((ShardTerms(),) * shards, totals, KnownWords())

    @property
    def states(self) -> tuple[str | None, ...]:
        """Of each shard, None of one that was never heard."""
        return tuple(shard.state for shard in self.shards)

    @property
    def documents(self) -> int:
        """Of all shards together."""
        return sum(shard.documents for shard in self.shards)

    @property
    def version(self) -> str:
        """The names of all states for people."""
        return VERSIONS.join(shard.version for shard in self.shards)

    def factors(self, token_ids: Int32) -> Float64:
        """The idf of some terms over all shards, float64[T]; 1 where there is none."""
        if self.totals is None:
            return np.ones(len(token_ids))
        return factors_of(self.documents, self.totals.frequencies(token_ids), self.totals.sums)

    def with_shards(self, changed: Mapping[int, tuple[ShardTerms, TermChange | None]]) -> KnownTerms:
        """What is known where some shards are at other states. With each what it adds to the counts of terms,
        None for nothing.
        """
        shards, totals = list(self.shards), self.totals
        for number, (shard, change) in changed.items():
            shards[number] = shard
            if change is not None and totals is not None and len(change[0]):
                totals = totals.changed(*change)
        return KnownTerms(tuple(shards), totals, KnownWords()) if changed else self
