"""Exact scores of candidates from all segments, a side at a time rather than a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from index.files.addresses import AHEAD, address_of, array_at, bring_near
from index.files.pieces import read_ahead
from index.runs import runs
from index.scoring import DECIMALS, dense_scores
from index.search.query import CheckedQuery
from index.search.threads import segment_threads
from index.segments.segment import Segment
from index.sparse.inverted_index import InvertedIndex
from index.sparse.search import LexicalQuery, exact_sums
from models.representations import Float32, Float64, Int64

# Documents that a dense search compares in the time that one side of a row takes.
DOCUMENTS_PER_ROW = 16

Array = npt.NDArray[Any]
Float16 = npt.NDArray[np.float16]


def exact_scores(
    segments: Sequence[Segment], query: CheckedQuery, places: Int64, rows: Int64
) -> tuple[Float64, Float64, Float64]:
    """`s_dense`, `s_lex` and `s_bm25` of rows int64[K] of the segments at places int64[K], ascending.

    float64[K] each; 0 for a side that is not in the query.
    """
    if len(rows) == 0:
        return np.empty(0), np.empty(0), np.empty(0)
    read_ahead(places, rows, lambda place, some: segments[place].pieces(some))

    def dense() -> Float64:
        return _dense(segments, query.dense, places, rows)

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
    costs = [cost, cost, 0 if query.bm25 is None else cost]
    scores = segment_threads().map(lambda side: sides[side](), costs)
    return scores[0], scores[1], scores[2]


def _lexical(indexes: Sequence[InvertedIndex], query: LexicalQuery, places: Int64, rows: Int64) -> Float64:
    return np.round(exact_sums(indexes, query, places, rows), DECIMALS)


def _dense(segments: Sequence[Segment], query: Float32 | None, places: Int64, rows: Int64) -> Float64:
    if query is None:
        return np.zeros(len(rows))
    if segments[0].windows is None:
        vectors = {place: segments[place].vectors for place, _ in runs(places)}
        found = gathered(vectors, places, rows, len(query))
        return dense_scores(query, found, np.arange(len(rows)))
    scores = np.empty(len(rows))
    for place, run in runs(places):
        scores[run] = segments[place].dense_scores(query, rows[run])
    return scores


def gathered(vectors: dict[int, Float16], places: Int64, rows: Int64, dimension: int) -> Float16:
    """Rows int64[K] of the segments at places int64[K], of which vectors has float16[N, D]: float16[K, D]."""
    addresses = np.zeros(max(vectors) + 1, np.int64)
    for place, stored in vectors.items():
        addresses[place] = address_of(stored, np.float16)
    bits = np.empty((len(rows), dimension), np.uint16)
    _gather(addresses, places, rows, bits)
    return bits.view(np.float16)


@njit(cache=True, nogil=True)
def _gather(addresses: Array, places: Array, rows: Array, bits: Array) -> None:
    dimension = bits.shape[1]
    starts = addresses[places] + 2 * dimension * rows
    for number in range(len(rows)):
        bring_near(starts[min(number + AHEAD, len(rows) - 1)], 2 * dimension)
        stored = array_at(starts[number], dimension, np.uint16)
        for value in range(dimension):
            bits[number, value] = stored[value]
