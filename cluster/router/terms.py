"""What all shards together know of terms and words, kept between searches by the states of the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from index.bm25.query import WordCounts
from index.sparse.idf import factors_of
from index.sparse.term_totals import TermTotals
from models.representations import Float64, Int32, Int64
from service.shard.messages import Message

MOST_WORDS = 100_000  # whose counts are kept
VERSIONS = ","  # between those of shards


@dataclass(frozen=True, slots=True)
class Told:
    """What a shard says of its documents at a state. version: the state's name for people; documents: how
    many there are. frequencies, masses: int64[X], what comes to n(t) and M(t) of X terms since another state,
    or since no documents at all; words: what it knows of those that were asked for.
    """

    state: str
    version: str
    documents: int
    since: str | None
    terms: Int32
    frequencies: Int64
    masses: Int64
    words: WordCounts | None

    @staticmethod
    def read(found: Message, vocabulary_size: int, words: int) -> Told:
        """Of a message. words: how many were asked for. Raises ValueError and its like."""
        values = found.values
        terms, frequencies, masses = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
        if "terms" in found.arrays:
            terms = found.array("terms", np.int32, None)
            frequencies, masses = (
                found.array(name, np.int64, len(terms)) for name in ("frequencies", "masses")
            )
            if len(terms) and not (terms.min() >= 0 and terms.max() < vocabulary_size):
                raise ValueError("a term is outside the vocabulary")
        counts = None
        if "word_frequencies" in found.arrays:
            documents, length = int(values["bm25_documents"]), int(values["total_length"])
            counts = WordCounts(documents, length, found.array("word_frequencies", np.int64, words))
        return Told(
            str(values["state"]),
            str(values["version"]),
            int(values["documents"]),
            values.get("since"),
            terms,
            frequencies,
            masses,
            counts,
        )


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
        found = [self.counts.get(word) for word in words]
        known = [count for count in found if count is not None]
        if not self.counts or len(known) < len(words):
            return None
        return WordCounts(self.documents, self.total_length, np.array(known, np.int64))

    def keep(self, words: Sequence[str], told: WordCounts) -> None:
        """Keeps what all shards told of words."""
        if len(self.counts) < MOST_WORDS:
            self.documents, self.total_length = told.documents, told.total_length
            self.counts |= zip(words, told.frequencies.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """What shards told at certain states, None where one was never heard; versions: their names for people;
    documents: how many each had; totals: the counts of terms of all of them, None where there is no idf.
    """

    states: tuple[str | None, ...]
    versions: tuple[str, ...]
    documents: tuple[int, ...]
    totals: TermTotals | None
    words: KnownWords

    @staticmethod
    def nothing(shards: int, totals: TermTotals | None) -> KnownTerms:
        """Before any shard was heard. totals: of no documents; None where there is no idf."""
        return KnownTerms((None,) * shards, ("",) * shards, (0,) * shards, totals, KnownWords())

    @property
    def version(self) -> str:
        """That of all shards together."""
        return VERSIONS.join(self.versions)

    def factors(self, token_ids: Int32) -> Float64:
        """The idf of some terms over all shards, float64[T]; 1 where there is none."""
        if self.totals is None:
            return np.ones(len(token_ids))
        return factors_of(sum(self.documents), self.totals.frequencies(token_ids), self.totals.sums)

    def after(self, told: Sequence[Told | None]) -> KnownTerms | None:
        """What is known with what shards told, None of one that told nothing; None where one began anew, so
        that all have to tell everything.
        """
        states, versions, documents = list(self.states), list(self.versions), list(self.documents)
        totals = self.totals
        for shard, each in enumerate(told):
            if each is None or each.state == states[shard]:
                continue
            if totals is not None:
                if each.since != states[shard]:
                    return None
                if len(each.terms):
                    totals = totals.changed(each.terms, each.frequencies, each.masses)
            states[shard], versions[shard], documents[shard] = each.state, each.version, each.documents
        if tuple(states) == self.states:
            return self
        return KnownTerms(tuple(states), tuple(versions), tuple(documents), totals, KnownWords())
