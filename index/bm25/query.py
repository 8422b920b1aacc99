"""A query's terms, weighed by what all segments of a snapshot know of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from index.bm25.analysis import Analyzer
from index.bm25.formula import BASE, SCALE, mean_length, ratios, slope
from index.bm25.languages import Bm25Language
from index.bm25.segment import Bm25Segment
from index.bm25.term_table import TermTable
from index.errors import SearchIndexError
from index.files.packed_bytes import PackedBytes
from index.sparse.idf import inverse_document_frequencies
from index.sparse.query import LexicalQuery
from models.representations import Float32, Float64, Int32, Int64


@dataclass(frozen=True, slots=True)
class Bm25Query:
    """The T distinct terms of a query that some document has, ascending.

    counts: int64[T], n_q(t); idf: float64[T]; places: int32[S, T], the number of each term in each of S
    segments, or -1; weights: float32[T], SCALE n_q(t) idf(t); facts: of the segments.
    """

    terms: tuple[str, ...]
    counts: Int64
    idf: Float64
    places: Int32
    weights: Float32
    facts: SegmentFacts

    @property
    def lexical(self) -> LexicalQuery:
        """The query as searches in inverted indexes take it."""
        facts = self.facts
        return LexicalQuery(
            self.places, self.weights, BASE, slope(facts.mean_length), facts.least, facts.most
        )


class SegmentFacts:
    """What S segments know together: their terms, and the mean length of their documents.

    least, most: float64[S], between which the weights of a segment lie relative to those of its index.
    """

    def __init__(self, segments: Sequence[Bm25Segment]) -> None:
        self.segments = segments
        self.documents = sum(segment.documents for segment in segments)
        self.mean_length = mean_length(sum(segment.total_length for segment in segments), self.documents)
        found = [ratios(each.longest, each.own_mean, self.mean_length) for each in segments]
        self.least, self.most = np.array(found, np.float64).reshape(-1, 2).T.copy()
        self.table = TermTable(
            [segment.terms for segment in segments],
            [segment.beginnings for segment in segments],
            [segment.frequencies.read() for segment in segments],
        )


class Bm25Statistics:
    """What a snapshot's segments together know.

    It is gathered when a search first asks: a live collection has a new snapshot after each write.
    """

    def __init__(self, language: Bm25Language, reading: int, segments: Sequence[Bm25Segment]) -> None:
        """language, reading: of queries as of the documents, see `Analyzer`."""
        self._language = language
        self._reading = reading
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
        counted = Analyzer(self._language, self._reading).counts(text)
        terms = sorted(counted)
        places, frequencies = facts.table.find(PackedBytes.of([term.encode() for term in terms]))
        known = np.flatnonzero(frequencies)
        counts = np.array([counted[terms[term]] for term in known.tolist()], np.int64)
        rarity = inverse_document_frequencies(facts.documents, frequencies[known])
        return Bm25Query(
            tuple(terms[term] for term in known.tolist()),
            counts,
            rarity,
            np.ascontiguousarray(places[:, known]),
            (SCALE * counts * rarity).astype(np.float32),
            facts,
        )

    def _gathered(self) -> SegmentFacts:
        with self._gathering:
            if self._segments is None:
                raise SearchIndexError("BM25 of a closed snapshot was asked for; open another")
            if self._facts is None:
                self._facts = SegmentFacts(self._segments)
            return self._facts
