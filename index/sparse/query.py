"""A lexical query, as searches in the inverted indexes of many segments take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.native.kernels import score_in_segments
from tercet.index.sparse.inverted_index import InvertedIndex
from tercet.models.representations import Float32, Float64, Int32, Int64


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """T terms of a query as S segments number them, and their weights.

    terms: int32[S, T], ascending in each segment but for -1, which it lacks; weights: float32[T], above 0.
    Where forward rows hold frequencies tf, a weight is tf / (tf + base + slope · length), and in each segment
    between `least` and `most` times, float64[S] both, what its index was built with.
    """

    terms: Int32
    weights: Float32
    base: float
    slope: float
    least: Float64
    most: Float64

    @staticmethod
    def of(token_ids: Int32, weights: Float32, segments: int) -> LexicalQuery:
        """A query whose terms all segments number alike: ascending distinct token ids int32[T] with weights
        float32[T] above 0.
        """
        ones = np.ones(segments)
        terms = np.repeat(token_ids[None], segments, axis=0)
        return LexicalQuery(terms, weights, 0.0, 0.0, ones, ones)

    def sums(self, indexes: Sequence[InvertedIndex], segments: Int64, rows: Int64) -> Float64:
        """Σ query weight · document weight of rows int64[K] of segments int64[K], ascending: float64[K]."""
        if not len(self.weights):
            return np.zeros(len(rows))
        records = tuple(index.record for index in indexes)
        return score_in_segments(records, self.terms, self.weights, self.base, self.slope, segments, rows)
