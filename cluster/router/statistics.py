"""What all shards together know of terms and words: asked for by the second, and kept between searches."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from tercet.index.bm25.query import WordCounts
from tercet.index.sparse.idf import factors_of
from tercet.index.sparse.term_totals import TermTotals
from tercet.models.representations import Float64, Int32
from tercet.service.shard.records import CountChange, ShardState, TermReport

MOST_WORDS = 100_000  # whose counts are kept
WORDS_AGAIN = 256  # that are asked for again with what changed, those that were asked for last
VERSIONS = ","  # between those of shards
UNSEARCHED = "*"  # in the place of that of a shard which is not searched
FRESH_SECONDS = 1.0  # so old what is known of terms may be
KEPT = 8  # that searches went by: of 250,000 terms each takes 4 MB


@dataclass(slots=True)
class KnownWords:
    """How many documents of all shards have each of some words: counts, by word; documents, total_length: of
    all shards, None until one was asked for.
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

    @property
    def last(self) -> tuple[str, ...]:
        """Those that were asked for last."""
        return tuple(islice(reversed(self.counts), WORDS_AGAIN))


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """What shards told at certain states, None of one that was never heard; totals: the counts of terms of
    all of them, None where there is no idf.
    """

    shards: tuple[ShardState | None, ...]
    totals: TermTotals | None
    words: KnownWords = field(default_factory=KnownWords)

    @property
    def version(self) -> str:
        """The names of all states for people."""
        return version_of(self.shards)

    def factors(self, token_ids: Int32) -> Float64:
        """The idf of some terms over all shards, float64[T]; 1 where there is none."""
        if self.totals is None:
            return np.ones(len(token_ids))
        documents = documents_of(self.shards)
        return factors_of(documents, self.totals.frequencies(token_ids), self.totals.sums)

    def state_of(self, shard: int) -> str | None:
        """That of one shard."""
        known = self.shards[shard]
        return None if known is None else known.state

    def after(self, reports: Mapping[int, TermReport]) -> KnownTerms | None:
        """What is known with what shards told, by their numbers; None where one told what leads from another
        state than is known here.
        """
        shards, totals = list(self.shards), self.totals
        for number, report in reports.items():
            change, known = report.change, self.state_of(number)
            if totals is not None and report.at.state != known:
                if change is None or change.since != known:
                    return None
                totals = totals.changed(change.terms, change.frequencies, change.masses)
            shards[number] = report.at
        return self if tuple(shards) == self.shards else KnownTerms(tuple(shards), totals)


class Statistics:
    """Of one collection. Use from the event loop."""

    def __init__(self, shards: int, totals: TermTotals | None) -> None:
        """totals: of no documents; None where there is no idf."""
        self.nothing = KnownTerms((None,) * shards, totals)
        self._kept = OrderedDict[str, KnownTerms]()
        self._current = self.nothing
        self._asked = -FRESH_SECONDS
        self.first = asyncio.Lock()  # of those who ask before anything is known, all but one wait

    @property
    def current(self) -> KnownTerms:
        """What is known."""
        return self._current

    @property
    def is_fresh(self) -> bool:
        """Whether it was asked for a moment ago."""
        return time.monotonic() < self._asked + FRESH_SECONDS

    def begin(self) -> None:
        """Somebody asks for what is new: the others go on meanwhile with what is known."""
        self._asked = time.monotonic()

    def give_up(self) -> None:
        """Asking failed: the next one asks again."""
        self._asked = -FRESH_SECONDS

    def at(self, version: str) -> KnownTerms | None:
        """What a search went by, as long as it is kept."""
        return self._kept.get(version)

    def keep(self, terms: KnownTerms) -> None:
        """It is known from now on."""
        self._current = self._kept[terms.version] = terms
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def version_of(shards: Sequence[ShardState | None], searched: Container[int] | None = None) -> str:
    """The names of all states for people. searched: the numbers of the shards that are, by default all."""
    return VERSIONS.join(
        UNSEARCHED if searched is not None and number not in searched else shard.version if shard else ""
        for number, shard in enumerate(shards)
    )


def documents_of(shards: Sequence[ShardState | None]) -> int:
    """How many documents all shards have."""
    return sum(shard.documents for shard in shards if shard is not None)


def sound(report: TermReport, vocabulary_size: int) -> TermReport:
    """What a shard told. Raises ValueError where that is of terms that there are none of."""
    change: CountChange | None = report.change
    if change is not None and len(change.terms):
        terms = change.terms
        if not (terms.min() >= 0 and terms.max() < vocabulary_size):
            raise ValueError("a term is outside the vocabulary")
    return report
