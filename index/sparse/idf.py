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

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from index.sparse.term_statistics import TermStatistics
from models.representations import Float32, Float64, Int32, Int64


@dataclass(frozen=True, slots=True)
class CollectionIdf:
    """What each term's query weight is multiplied by. factors: float64[V], idf(t) / m."""

    factors: Float64

    @staticmethod
    def of(documents: int, segments: Iterable[TermStatistics], vocabulary_size: int) -> CollectionIdf:
        """The factors in a collection of N documents, from the statistics of each segment."""
        frequencies, masses = (np.zeros(vocabulary_size, np.int64) for _ in range(2))
        for segment in segments:
            frequencies[segment.terms] += segment.frequencies
            masses[segment.terms] += segment.masses
        return CollectionIdf(idf_factors(documents, frequencies, masses))

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
