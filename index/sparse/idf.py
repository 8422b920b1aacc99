"""Collection idf: a query's rare terms count more, its common ones less, as this collection has them.

    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))    N documents, n(t) of them with a weight for term t
    m      = sum of M(t) idf(t) over all terms / sum of M(t)    M(t): the sum of these weights
    s_lex  = sum of w_q(t) w_p(t) idf(t) / m over shared terms

The idf is that of BM25 (Robertson and Zaragoza 2009, section 3.1) in Lucene's form, which is above 0 for
every term. m is its mean over all lexical weight of the documents, so that this adds up to as much with the
factors idf(t) / m as without: the lexical score keeps its scale beside the other two. N, n(t) and M(t) are
whole numbers over the documents of all segments; the division into segments does not show in a single bit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from index.errors import SearchIndexError
from index.native.kernels import add_statistics
from index.sparse.left_counts import LeftCounts
from index.sparse.term_statistics import TermStatistics
from models.representations import Float32, Float64, Int32, Int64


class CollectionIdf:
    """What each term's query weight is multiplied by, in a collection of N documents with these segments.

    It is counted when a search first asks, once for all threads: a live collection has a new snapshot after
    each write, and few of them are ever searched.
    """

    def __init__(
        self, documents: int, segments: Sequence[LeftCounts[TermStatistics]], vocabulary_size: int
    ) -> None:
        self._documents = documents
        self._vocabulary_size = vocabulary_size
        self._segments: Sequence[LeftCounts[TermStatistics]] | None = segments
        self._factors: Float64 | None = None
        self._counting = threading.Lock()

    def close(self) -> None:
        """Lets go of the segments; factors that were not counted by then cannot be."""
        self._segments = None

    @property
    def factors(self) -> Float64:
        """float64[V], idf(t) / m. Raises SearchIndexError once closed."""
        with self._counting:
            if self._factors is None:
                self._factors = self._count()
            return self._factors

    def _count(self) -> Float64:
        segments = self._segments
        if segments is None:
            raise SearchIndexError("the idf of a closed snapshot was asked for; open another")
        frequencies, masses = (np.zeros(self._vocabulary_size, np.int64) for _ in range(2))
        for segment in (each.read() for each in segments):
            add_statistics(segment.terms, segment.frequencies, segment.masses, frequencies, masses)
        return idf_factors(self._documents, frequencies, masses)

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors float64[T] of some terms."""
        return self.factors[token_ids]

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32:
        """A query's weights float32[T], times the factors of their terms."""
        return (weights * self.of_terms(token_ids)).astype(np.float32)


def inverse_document_frequencies(documents: int, frequencies: Int64) -> Float64:
    """idf(t), float64[T], of terms that n(t) int64[T] of the documents have."""
    rarity: Float64 = np.log1p((documents - frequencies + 0.5) / (frequencies + 0.5))
    return rarity


def idf_factors(documents: int, frequencies: Int64, masses: Int64) -> Float64:
    """idf(t) / m, float64[V], from n(t) int64[V] and M(t) int64[V] in any unit; all 1 where M is 0."""
    idf = inverse_document_frequencies(documents, frequencies)
    mass = masses.astype(np.float64)
    total = float(mass.sum())
    return idf / (float((mass * idf).sum()) / total) if total else np.ones(len(idf))
