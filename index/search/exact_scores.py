"""Exact scores of candidates from all segments, a side at a time rather than a segment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from index.files.pieces import read_ahead
from index.native.kernels import exact_products_at
from index.runs import runs
from index.scoring import DECIMALS
from index.search.query import CheckedQuery
from index.search.threads import segment_threads
from index.segments.segment import Segment
from index.sparse.inverted_index import InvertedIndex
from index.sparse.search import LexicalQuery, exact_sums
from models.representations import Float32, Float64, Int64

# Documents that a dense search compares in the time that one side of a row takes.
DOCUMENTS_PER_ROW = 4


def exact_scores(
    segments: Sequence[Segment],
    query: CheckedQuery,
    places: Int64,
    rows: Int64,
    known: Float64 | None = None,
) -> tuple[Float64, Float64, Float64]:
    """`s_dense`, `s_lex` and `s_bm25` of rows int64[K] of the segments at places int64[K], ascending.

    known: `s_dense`, where that was computed before. float64[K] each; 0 for a side that is not in the query.
    """
    if len(rows) == 0:
        return np.empty(0), np.empty(0), np.empty(0)
    read_ahead(places, rows, lambda place, some: segments[place].pieces(some))

    def dense() -> Float64:
        return exact_dense(segments, query.dense, places, rows) if known is None else known

    def sparse() -> Float64:
        lexical = LexicalQuery.of(query.token_ids, query.weights, len(segments))
        return _lexical([segment.inverted for segment in segments], lexical, places, rows)

    def bm25() -> Float64:
        if query.bm25 is None:
            return np.zeros(len(rows))
        indexes = [part.inverted for part in query.bm25.facts.segments]
        read_ahead(places, rows, lambda place, some: indexes[place].pieces(some))
        return _lexical(indexes, query.bm25.lexical, places, rows)

    sides = (dense, sparse, bm25)
    cost = DOCUMENTS_PER_ROW * len(rows)
    costs = [cost if known is None else 0, cost, 0 if query.bm25 is None else cost]
    scores = segment_threads().map(lambda side: sides[side](), costs)
    return scores[0], scores[1], scores[2]


def exact_dense(segments: Sequence[Segment], query: Float32 | None, places: Int64, rows: Int64) -> Float64:
    """`s_dense` of rows int64[K] of the segments at places int64[K], ascending: float64[K]."""
    if query is None:
        return np.zeros(len(rows))
    if segments[0].windows is None:
        vectors = tuple(segment.dense_index.record for segment in segments)
        return np.round(exact_products_at(vectors, places, rows, query), DECIMALS)
    scores = np.empty(len(rows))
    for place, run in runs(places):
        scores[run] = segments[place].dense_scores(query, rows[run])
    return scores


def _lexical(indexes: Sequence[InvertedIndex], query: LexicalQuery, places: Int64, rows: Int64) -> Float64:
    return np.round(exact_sums(indexes, query, places, rows), DECIMALS)
