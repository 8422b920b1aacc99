"""Compiled loops of exact lexical scores; compiled and cached like those of `kernels.py`.

Letters: S segments, T terms of the query, K rows. `terms` int32[S, T] are the query's as each segment numbers
them, ascending but for -1, which a segment lacks; `weights` float32[T] are theirs, above 0. `saturation` is
that of `saturation.py`: base and slope, used for segments that have lengths of documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.addresses import AHEAD, array_at, bring_near
from index.selection import kth_largest

PLACE_BYTES = 8  # of where a row begins
VALUE_BYTES = 4  # of a token id, and of its weight
LARGEST_SCORE = 3.4028234e38  # within float32
MARKS = 8_192  # slots of the table that tells most tokens of a row from those of the query; a power of 2
INTERVALS = 512  # in which values are counted to find about the k-th

Array = npt.NDArray[Any]


@compiled(nogil=True)
def kth_bound(values: Array, k: int) -> Any:
    """A value that at least k of the int64 values reach and that is close to the k-th largest.

    Counts the values in equal intervals: one pass, where a selection would take several. Needs k values.
    """
    smallest, largest = values.min(), values.max()
    shift = np.int64(0)
    while (largest - smallest) >> shift >= INTERVALS:
        shift += 1
    counts = np.zeros(INTERVALS, np.int64)
    for value in values:
        counts[(value - smallest) >> shift] += 1
    interval, reached = INTERVALS, 0
    while reached < k:
        interval -= 1
        reached += counts[interval]
    return smallest + (interval << shift)


@compiled(nogil=True)
def _score_row(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    norm: float,
    row: int,
    query_ids: Array,
    query_weights: Array,
    marks: Array,
) -> float:
    """Σ query weight · document weight over shared tokens, added in float64 by ascending token id.

    norm: what frequencies are compared with; 0 where the row holds the weights themselves.
    """
    score = 0.0
    for position in range(indptr[row], indptr[row + 1]):
        token = token_ids[position]
        if marks[token & (MARKS - 1)]:
            place = np.searchsorted(query_ids, token)
            if place < len(query_ids) and query_ids[place] == token:
                weight = np.float64(weights[position])
                if norm > 0:
                    weight /= weight + norm
                score += np.float64(query_weights[place]) * weight
    return score


@compiled(nogil=True)
def score_rows(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    saturation: Any,
    rows: Array,
    query_ids: Array,
    query_weights: Array,
) -> Array:
    """Exact scores float64[K] of rows int64[K] of one segment.

    saturation: lengths int32[N], or int32[0] where forward rows hold the weights themselves, base and slope;
    query_ids: int32, ascending; query_weights: float32.
    """
    lengths, base, slope = saturation
    marks = np.zeros(MARKS, np.bool_)
    for token in query_ids:
        marks[token & (MARKS - 1)] = True
    scores = np.empty(len(rows), np.float64)
    for place in range(len(rows)):
        norm = base + slope * lengths[rows[place]] if len(lengths) > 0 else 0.0
        scores[place] = _score_row(
            indptr, token_ids, weights, norm, rows[place], query_ids, query_weights, marks
        )
    return scores


@compiled(nogil=True)
def _bring_row_near(index: Any, row: int) -> None:
    indptr = array_at(index.indptr, index.size + 1, np.int64)
    first, size = VALUE_BYTES * indptr[row], VALUE_BYTES * (indptr[row + 1] - indptr[row])
    bring_near(index.token_ids + first, size)
    bring_near(index.weights + first, size)


@compiled(nogil=True)
def score_in_segments(
    indexes: Array,
    terms: Array,
    weights: Array,
    base: float,
    slope: float,
    segments: Array,
    rows: Array,
    wanted: Array,
    scores: Array,
) -> None:
    """The exact scores of the wanted ones, bool[K], of rows int64[K] of segments int64[K], ascending."""
    marks = np.zeros(MARKS, np.bool_)
    query_ids, query_weights = np.empty(terms.shape[1], np.int32), np.empty(terms.shape[1], np.float32)
    known, current = 0, np.int64(-1)
    for place in range(len(rows)):
        ahead = min(place + 2 * AHEAD, len(rows) - 1)
        if wanted[ahead]:
            bring_near(indexes[segments[ahead]].indptr + PLACE_BYTES * rows[ahead], PLACE_BYTES)
        ahead = min(place + AHEAD, len(rows) - 1)
        if wanted[ahead]:
            _bring_row_near(indexes[segments[ahead]], rows[ahead])
        if not wanted[place]:
            continue
        segment, row = segments[place], rows[place]
        index = indexes[segment]
        if segment != current:
            current = segment
            for number in range(known):
                marks[query_ids[number] & (MARKS - 1)] = False
            known = 0
            for number in range(terms.shape[1]):
                if terms[segment, number] >= 0:
                    query_ids[known] = terms[segment, number]
                    query_weights[known] = weights[number]
                    marks[query_ids[known] & (MARKS - 1)] = True
                    known += 1
        indptr = array_at(index.indptr, index.size + 1, np.int64)
        values = indptr[index.size]
        norm = 0.0
        if index.lengths != 0:
            norm = base + slope * array_at(index.lengths, index.size, np.int32)[row]
        scores[place] = _score_row(
            indptr,
            array_at(index.token_ids, values, np.int32),
            array_at(index.weights, values, np.float32),
            norm,
            row,
            query_ids[:known],
            query_weights[:known],
            marks,
        )


@compiled(nogil=True)
def score_candidates(
    indexes: Array,
    terms: Array,
    weights: Array,
    base: float,
    slope: float,
    segments: Array,
    rows: Array,
    bounds: Array,
    unit: float,
    k: int,
) -> tuple[Array, Array]:
    """Exact scores of candidates; keeps the k best and all that tie with the k-th, if above 0.

    segments, rows: int64[K], the segments ascending; bounds: int64[K], where bound · unit is at least the
    exact score.
    Rows whose bound is below the exact k-th score are not scored. Returns the places of those that are kept,
    int64, ascending, and the scores of all, float32[K].
    """
    exact, scores = np.zeros(len(rows), np.float64), np.zeros(len(rows), np.float32)
    wanted = np.ones(len(rows), np.bool_)
    if len(rows) > k:
        likely = kth_bound(bounds, k)
        for place in range(len(rows)):
            wanted[place] = bounds[place] >= likely
    score_in_segments(indexes, terms, weights, base, slope, segments, rows, wanted, exact)
    _narrow(exact, scores)
    threshold = np.float32(0)
    if len(rows) > k:
        threshold = kth_largest(scores, k)
        for place in range(len(rows)):
            wanted[place] = not wanted[place] and bounds[place] * unit * (1 + 1e-6) >= threshold
        score_in_segments(indexes, terms, weights, base, slope, segments, rows, wanted, exact)
        _narrow(exact, scores)
        threshold = kth_largest(scores, k)
    kept, count = np.empty(len(rows), np.int64), 0
    for place in range(len(rows)):
        kept[count] = place
        count += scores[place] >= threshold and scores[place] > 0
    return kept[:count], scores


@compiled(nogil=True)
def _narrow(exact: Array, scores: Array) -> None:
    for place in range(len(exact)):
        scores[place] = min(exact[place], LARGEST_SCORE)
