"""A query's terms, weighed by what all segments of a snapshot know of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from tercet.index.bm25.alternatives import query_terms
from tercet.index.bm25.analysis import Analyzer
from tercet.index.bm25.formula import BASE, SCALE, mean_length, ratios, slope
from tercet.index.bm25.languages import Bm25Language
from tercet.index.bm25.segment import Bm25Segment
from tercet.index.bm25.term_table import TermTable
from tercet.index.errors import SearchIndexError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.sparse.idf import inverse_document_frequencies
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import Float32, Float64, Int32, Int64, Shape


@dataclass(frozen=True, slots=True)
class WordCounts:
    """What documents know of T terms: how many there are, how many terms they have together, and how many of
    them have each, int64[T].
    """

    documents: int
    total_length: int
    frequencies: Annotated[Int64, Shape("T")]

    @staticmethod
    def together(parts: Sequence[WordCounts]) -> WordCounts:
        """What all parts know together, one at least."""
        return WordCounts(
            sum(part.documents for part in parts),
            sum(part.total_length for part in parts),
            np.sum([part.frequencies for part in parts], axis=0, dtype=np.int64),
        )


KnownWords = Callable[[Sequence[str]], WordCounts]
"""Tells what documents know of some terms."""


@dataclass(frozen=True, slots=True)
class WeighedWords:
    """T distinct terms, ascending, that some document has: counts int64[T], n_q(t); idf: float64[T]; with the
    mean length of all documents.
    """

    terms: tuple[str, ...]
    counts: Annotated[Int64, Shape("T")]
    idf: Annotated[Float64, Shape("T")]
    mean_length: float

    @property
    def weights(self) -> Float32:
        """SCALE n_q(t) idf(t), float32[T]."""
        return (SCALE * self.counts * self.idf).astype(np.float32)


@dataclass(frozen=True, slots=True)
class QueryWords:
    """T distinct terms of a text, ascending: those of its words, and alternatives of them.

    counts: int64[T], how often it has each, 0 of an alternative. A pairs: the alternative int32[A] has at
    most a share float64[A] of the weight of the term owners int32[A].
    """

    terms: tuple[str, ...]
    counts: Annotated[Int64, Shape("T")]
    alternatives: Annotated[Int32, Shape("A")]
    owners: Annotated[Int32, Shape("A")]
    shares: Annotated[Float64, Shape("A")]

    def weighed(self, known: WordCounts) -> WeighedWords:
        """Those that some document has, by what is known of them. The idf of an alternative, counted once, is
        at most its shares of n_q(t) idf(t) of the terms that it stands in for.
        """
        idf = inverse_document_frequencies(known.documents, known.frequencies)
        most = np.zeros(len(idf))
        np.add.at(most, self.alternatives, self.shares * (self.counts * idf)[self.owners])
        idf = np.where(self.counts, idf, np.minimum(idf, most))
        present = np.flatnonzero(known.frequencies)
        return WeighedWords(
            tuple(self.terms[term] for term in present.tolist()),
            np.maximum(self.counts[present], 1),
            idf[present],
            mean_length(known.total_length, known.documents),
        )


@dataclass(frozen=True, slots=True)
class Bm25Query:
    """The T words of a query. numbers: int32[S, T], the number of each in each of S segments or -1; facts: of
    the segments.
    """

    words: WeighedWords
    numbers: Int32
    facts: SegmentFacts

    @property
    def lexical(self) -> LexicalQuery:
        """The query as searches in inverted indexes take it."""
        facts = self.facts
        return LexicalQuery(
            self.numbers, self.words.weights, BASE, slope(facts.mean_length), facts.least, facts.most
        )


class SegmentFacts:
    """What S segments know together: their terms, and the mean length of their documents.

    least, most: float64[S], between which the weights of a segment lie relative to those of its index.
    """

    def __init__(
        self,
        segments: Sequence[Bm25Segment],
        table: TermTable | None = None,
        mean: float | None = None,
    ) -> None:
        """table: of their terms, where that is made already; mean: the mean length to go by, that of more
        documents than theirs, by default their own.
        """
        self.segments = segments
        self.documents = sum(segment.documents for segment in segments)
        self.total_length = sum(segment.total_length for segment in segments)
        self.mean_length = mean_length(self.total_length, self.documents) if mean is None else mean
        extremes = [ratios(segment.longest, segment.own_mean, self.mean_length) for segment in segments]
        self.least, self.most = np.array(extremes, np.float64).reshape(-1, 2).T.copy()
        self.table = table or TermTable(
            (segment.terms, segment.beginnings, segment.frequencies.read()) for segment in segments
        )


class Bm25Statistics:
    """What a snapshot's segments together know.

    It is gathered when a search first asks: a live collection has a new snapshot after each write. known: by
    which words are weighed instead, where there are more documents than these segments have.
    """

    known: KnownWords | None = None

    def __init__(self, language: Bm25Language, segments: Sequence[Bm25Segment]) -> None:
        """language: of queries as of the documents, see `Analyzer`."""
        self._language = language
        self._segments: Sequence[Bm25Segment] | None = segments
        self._facts: SegmentFacts | None = None
        self._gathering = threading.Lock()

    def close(self) -> None:
        """Lets go of the segments; queries that were made before still have them."""
        with self._gathering:
            self._segments = self._facts = None

    def query(self, text: str) -> Bm25Query:
        """The terms of a text. Raises SearchIndexError once closed."""
        facts = self._gathered()
        words = words_of(text, self._language)
        if self.known is not None:
            return self.query_of(words.weighed(self.known(words.terms)))
        numbers, frequencies = facts.table.find(_packed(words.terms))
        weighed = words.weighed(WordCounts(facts.documents, facts.total_length, frequencies))
        return Bm25Query(weighed, np.ascontiguousarray(numbers[:, np.flatnonzero(frequencies)]), facts)

    def counts_of(self, terms: Sequence[str]) -> WordCounts:
        """What these segments know of some terms. Raises SearchIndexError once closed."""
        facts = self._gathered()
        _, frequencies = facts.table.find(_packed(terms))
        return WordCounts(facts.documents, facts.total_length, frequencies)

    def query_of(self, words: WeighedWords) -> Bm25Query:
        """A query of words that were weighed by what more documents than these know of them.

        Raises SearchIndexError once closed.
        """
        facts = self._gathered()
        numbers, _ = facts.table.find(_packed(words.terms))
        return Bm25Query(words, numbers, SegmentFacts(facts.segments, facts.table, words.mean_length))

    def _gathered(self) -> SegmentFacts:
        with self._gathering:
            if self._segments is None:
                raise SearchIndexError("BM25 of a closed snapshot was asked for; open another")
            if self._facts is None:
                self._facts = SegmentFacts(self._segments)
            return self._facts


def words_of(text: str, language: Bm25Language) -> QueryWords:
    """The distinct terms of a text, ascending. language: see `Analyzer`."""
    counts, shares = query_terms(text, Analyzer(language))
    terms = tuple(sorted(counts.keys() | {term for _, term in shares}))
    numbers = {term: number for number, term in enumerate(terms)}
    return QueryWords(
        terms,
        np.array([counts[term] for term in terms], np.int64),
        np.array([numbers[term] for _, term in shares], np.int32),
        np.array([numbers[word] for word, _ in shares], np.int32),
        np.array(list(shares.values()), np.float64),
    )


def _packed(terms: Sequence[str]) -> PackedBytes:
    return PackedBytes.of([term.encode() for term in terms])
