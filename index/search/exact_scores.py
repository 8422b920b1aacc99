"""Exact scores of candidates from all segments, a side at a time rather than a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from index.files.addresses import address_of, array_at
from index.scoring import DECIMALS, dense_scores
from index.search.query import CheckedQuery
from index.segments.segment import Segment
from index.sparse.inverted_index import InvertedIndex
from index.sparse.search import LexicalQuery, exact_sums
from models.representations import Float32, Float64, Int64

Array = npt.NDArray[Any]
Float16 = npt.NDArray[np.float16]


def exact_scores(
    segments: Sequence[Segment], query: CheckedQuery, places: Int64, rows: Int64
) -> tuple[Float64, Float64, Float64]:
    """`s_dense`, `s_lex` and `s_bm25` of rows int64[K] of the segments at places int64[K], ascending.

    float64[K] each; 0 for a side that is not in the query.
    """
    dense = sparse = bm25 = np.zeros(len(rows))
    if len(rows) and query.dense is not None:
        dense = _dense(segments, query.dense, places, rows)
    if len(rows):
        lexical = LexicalQuery.of(query.token_ids, query.weights, len(segments))
        sparse = _lexical([segment.inverted for segment in segments], lexical, places, rows)
    if len(rows) and query.bm25 is not None:
        indexes = [part.inverted for part in query.bm25.facts.segments]
        bm25 = _lexical(indexes, query.bm25.lexical, places, rows)
    return dense, sparse, bm25


def _lexical(indexes: Sequence[InvertedIndex], query: LexicalQuery, places: Int64, rows: Int64) -> Float64:
    return np.round(exact_sums(indexes, query, places, rows), DECIMALS)


def _dense(segments: Sequence[Segment], query: Float32, places: Int64, rows: Int64) -> Float64:
    if segments[0].windows is None:
        used = np.unique(places).tolist()
        vectors = gathered({place: segments[place].vectors for place in used}, places, rows, len(query))
        return dense_scores(query, vectors, np.arange(len(rows)))
    scores = np.empty(len(rows))
    for place in np.unique(places).tolist():
        run = slice(*np.searchsorted(places, (place, place + 1)))
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
    for number in range(len(rows)):
        first = addresses[places[number]] + 2 * rows[number] * dimension
        bits[number, :] = array_at(first, dimension, np.uint16)
