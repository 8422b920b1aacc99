"""Collection idf: a query's rare terms count more, its common ones less, as this collection has them.

    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))    N documents, n(t) of them with a weight for term t
    m      = sum over terms of n(t) idf(t) / sum over terms of n(t)
    s_lex  = sum over shared terms of w_q(t) w_p(t) idf(t) / m

The idf is that of BM25 (Robertson and Zaragoza 2009, section 3.1) in Lucene's form, which is above 0 for
every term. Each stored lexical weight gives m the idf of its term, so the factors idf(t) / m have the mean 1
over all of them: the lexical score keeps its scale beside the other two. N and n(t) count the documents of
all segments; they are whole numbers, so that the division into segments does not show in a single bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from index.scoring import Float64
from models.representations import Float32, Int32, Int64


@dataclass(frozen=True, slots=True)
class CollectionIdf:
    """What each term's query weight is multiplied by. factors: float64[V], idf(t) / m."""

    factors: Float64

    @staticmethod
    def of(documents: int, frequencies: Iterable[Int32], vocabulary_size: int) -> CollectionIdf:
        """The factors in a collection of N documents.

        frequencies: int32[V] of each segment, how many of its documents have each term.
        """
        total = np.zeros(vocabulary_size, np.int64)
        for counts in frequencies:
            total += counts
        return CollectionIdf(idf_factors(total, documents))

    def of_terms(self, token_ids: Int32) -> Float64:
        """The factors float64[T] of some terms."""
        return self.factors[token_ids]

    def weighted(self, token_ids: Int32, weights: Float32) -> Float32:
        """A query's weights float32[T], times the factors of their terms."""
        return (weights * self.of_terms(token_ids)).astype(np.float32)


def idf_factors(frequencies: Int64, documents: int) -> Float64:
    """idf(t) / m, float64[V], from n(t) int64[V]; 1 for every term where nothing is stored."""
    idf: Float64 = np.log1p((documents - frequencies + 0.5) / (frequencies + 0.5))
    stored = int(frequencies.sum())
    if stored == 0:
        return np.ones(len(frequencies))
    return idf / (float((frequencies * idf).sum()) / stored)
