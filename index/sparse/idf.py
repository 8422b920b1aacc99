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

from collections.abc import Sequence

import numpy as np

from tercet.index.errors import SearchIndexError
from tercet.index.sparse.left_counts import LeftCounts
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.index.sparse.term_totals import TermCounts, TermSums, TermTotals
from tercet.index.sparse.term_versions import TermVersion
from tercet.models.representations import Float32, Float64, Int32, Int64


class CollectionIdf:
    """What each term's query weight is multiplied by, in a collection of N documents with these segments.

    Terms are counted when a search first asks, once for all threads. version: at which they may be known
    already, from searches of before some writes.
    """

    def __init__(
        self,
        documents: int,
        segments: Sequence[LeftCounts[TermStatistics]],
        vocabulary_size: int,
        version: TermVersion | None = None,
    ) -> None:
        self._documents = documents
        self._segments: Sequence[LeftCounts[TermStatistics]] | None = segments
        self._vocabulary_size = vocabulary_size
        self._version = TermVersion() if version is None else version

    def close(self) -> None:
        """Lets go of the segments; terms that were not counted by then cannot be."""
        self._segments = None

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors idf(t) / m float64[T] of some terms; all 1 where no document has a weight.

        Raises SearchIndexError once closed.
        """
        counts = self._version.read(token_ids, self._count)
        if counts is None:  # many writes old: counted by itself from now on
            self._version = TermVersion()
            return self.of_terms(token_ids)
        return factors_of(self._documents, *counts)

    def counts(self) -> TermCounts:
        """n(t) and M(t) of all terms: int64[V] each, of the caller's own. Raises as `of_terms`."""
        counted = self._version.counts(self._count)
        return self._count().counts() if counted is None else counted

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32:
        """A query's weights float32[T], times the factors of their terms."""
        return (weights * self.of_terms(token_ids)).astype(np.float32)

    def _count(self) -> TermTotals:
        if self._segments is None:
            raise SearchIndexError("the idf of a closed snapshot was asked for; open another")
        return TermTotals([statistics.read() for statistics in self._segments], self._vocabulary_size)


class GivenIdf:
    """Factors that are known of some terms, ascending: those of more documents than are here."""

    def __init__(self, token_ids: Int32, factors: Float64) -> None:
        self._token_ids = token_ids
        self._factors = factors

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors of some of the terms, float64[T]."""
        return self._factors[np.searchsorted(self._token_ids, token_ids)]


def factors_of(documents: int, frequencies: Int64, sums: TermSums) -> Float64:
    """The factors idf(t) / m float64[T] of terms that n(t) int64[T] of the documents have; all 1 without any
    weight. sums: over all terms.
    """
    mean = sums.mean_idf(documents)
    if mean is None:
        return np.ones(len(frequencies))
    return inverse_document_frequencies(documents, frequencies) / mean


def inverse_document_frequencies(documents: int, frequencies: Int64) -> Float64:
    """idf(t), float64[T], of terms that n(t) int64[T] of the documents have."""
    rarity: Float64 = np.log1p((documents - frequencies + 0.5) / (frequencies + 0.5))
    return rarity
