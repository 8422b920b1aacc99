"""Compiled loops of a search in the inverted index: accumulating, selecting, exact scores.

Every function is a pure function of arrays and releases the GIL. It is compiled on first use and cached on
disk beside this file; where that folder is read-only, Numba uses the cache folder of the user, or the one
that the variable NUMBA_CACHE_DIR names. Importing compiles nothing. To Numba a read-only array is another
type than a writable one: `index/sparse/inverted_index.py` passes stored arrays read-only, so each function is
compiled once (those that take accumulators twice, for their two widths).

Letters: N documents, V vocabulary, T terms of the query that the index knows, K candidates. An *entry* is
one term in one block of `BLOCK` documents. `saturation` is that of `index/sparse/saturation.py`: lengths
int32[N], base and slope; int32[0] where forward rows hold the weights themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from numba import njit
except ImportError as error:
    raise ImportError("the inverted index needs Numba: pip install -c constraints.txt -e '.[cpu]'") from error

BLOCK = 32_768  # documents of a block, fixed by the format; 64 KiB of accumulators stay in cache
LANES = 64  # accumulators whose maximum is looked at before any single one is
CHUNK = 4_096  # accumulators to which all columns are added while they stay in the first-level cache
INTERVALS = 512  # in which bounds are counted to find about the k-th
NARROW_TERMS = 64  # more known terms than these get 32-bit accumulators, where rounding weighs as little
NARROW_LIMIT = 65_535
WIDE_LIMIT = 4_294_967_295
LARGEST_MULTIPLE = 65_000  # largest 255 c / unit of one term, so that its multiplier fits 16 bits
LINE = 16  # values of 4 bytes in a cache line
LARGEST_SCORE = 3.4028234e38  # within float32
MARKS = 8_192  # slots of the table that tells most tokens of a row from those of the query; a power of 2

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def quantize_query(
    terms: Array, largest: Array, query_ids: Array, query_weights: Array
) -> tuple[Array, Array, Any, Any, bool]:
    """Integer multipliers of the query's known terms, such that no sum of bounds can overflow.

    query_ids: int32, ascending; query_weights: float32, above 0. Returns the terms' places in the directory
    int64[T] and multipliers uint16[T] = ⌈256 c / unit⌉, with c = query weight · largest weight / 255;
    the unit; the slack Σ(c / unit + 2), rounded up; and whether sums fit 16 bits.
    """
    places = np.empty(len(query_ids), np.int64)
    steps = np.empty(len(query_ids), np.float64)
    known = 0
    for position in range(len(query_ids)):
        place = np.searchsorted(terms, query_ids[position])
        if place < len(terms) and terms[place] == query_ids[position]:
            places[known] = place
            steps[known] = np.float64(query_weights[position]) * np.float64(largest[place]) / 255
            known += 1
    places, steps = places[:known], steps[:known]
    if known == 0:
        return places, np.empty(0, np.uint16), 1.0, 0, True
    narrow = known <= NARROW_TERMS
    limit = (NARROW_LIMIT if narrow else WIDE_LIMIT) - 2 * known
    total = steps.sum()
    unit = max(total * 255 / limit, steps.max() * 255 / LARGEST_MULTIPLE)
    multipliers = np.ceil(steps * (256 / unit)).astype(np.uint16)
    return places, multipliers, unit, np.int64(np.ceil(total / unit)) + 2 * known + 1, narrow


@njit(cache=True, nogil=True)
def _add_postings(accumulators: Array, documents: Array, impacts: Array, multiplier: int) -> None:
    """Add floor(impact · multiplier / 256) + 1 where the term occurs."""
    for position in range(len(documents)):
        product = np.uint32(impacts[position]) * np.uint32(multiplier)
        accumulators[documents[position]] += np.uint16((product >> np.uint32(8)) + np.uint32(1))


@njit(cache=True, nogil=True)
def _add_column(accumulators: Array, column: Array, multiplier: int) -> None:
    """Add floor(impact · multiplier / 256) everywhere; 16-bit steps let one instruction do sixteen."""
    high = np.uint16(multiplier >> np.uint16(8))
    low = np.uint16(multiplier & np.uint16(255))
    for document in range(len(column)):
        impact = np.uint16(column[document])
        rest = np.uint16(np.uint16(impact * low) >> np.uint16(8))
        accumulators[document] += np.uint16(impact * high) + rest


@njit(cache=True, nogil=True)
def _clear_excluded(accumulators: Array, allowed: Array) -> None:
    for document in range(len(accumulators)):
        accumulators[document] *= np.uint16(allowed[document])


@njit(cache=True, nogil=True)
def _maximum(values: Array) -> Any:
    largest = values[0]
    for position in range(len(values)):
        largest = max(largest, values[position])
    return largest


@njit(cache=True, nogil=True)
def _kth_bound(values: Array, k: int) -> Any:
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


@njit(cache=True, nogil=True)
def _lane_bound(accumulators: Array, k: int) -> Any:
    """A value that at least k accumulators reach, from the maxima of lanes; 0 where lanes are too few."""
    lanes = len(accumulators) // LANES
    if lanes < k:
        return 0
    maxima = np.empty(lanes, np.int64)
    for lane in range(lanes):
        maxima[lane] = _maximum(accumulators[lane * LANES : (lane + 1) * LANES])
    return _kth_bound(maxima, k)


@njit(cache=True, nogil=True)
def find_candidates(
    term_entries: Array,
    entry_block: Array,
    entry_start: Array,
    entry_column: Array,
    documents: Array,
    impacts: Array,
    columns: Array,
    size: int,
    terms: Array,
    multipliers: Array,
    slack: int,
    share: float,
    k: int,
    allowed: Array,
    accumulators: Array,
) -> tuple[Array, Array]:
    """Every document whose bound is above 0 and reaches `share` · (the k-th largest bound - `slack`).

    A document's bound is the sum over its terms of floor(impact · multiplier / 256) + 1; for terms with a
    column the 1 is added whether or not the document has the term.

    terms: int64[T], places in the directory; multipliers: uint16[T]; allowed:
    bool[N], or bool[0] for all; accumulators: uint16 or uint32[65536], work space.
    Returns rows int64[K], ascending, and bounds int64[K].
    """
    rows = np.empty(4096, np.int64)
    bounds = np.empty(4096, np.int64)
    found = 0
    floor: Any = np.int64(1)
    cursors = term_entries[terms]
    added = np.empty(len(terms), np.int64)  # columns of the block
    added_multiplier = np.empty_like(multipliers)
    for block in range((size + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        here = accumulators[: min(BLOCK, size - first)]
        here[:] = 0
        touched, adding = False, 0
        for place in range(len(terms)):
            entry = cursors[place]
            if entry == term_entries[terms[place] + 1] or entry_block[entry] != block:
                continue
            cursors[place] += 1
            touched = True
            if entry_column[entry] < 0:
                span = slice(entry_start[entry], entry_start[entry + 1])
                _add_postings(accumulators, documents[span], impacts[span], multipliers[place])
            else:
                added[adding] = entry_column[entry]
                added_multiplier[adding] = multipliers[place]
                adding += 1
        if not touched:
            continue
        for start in range(0, len(here), CHUNK):
            chunk = slice(start, min(start + CHUNK, len(here)))
            for place in range(adding):
                _add_column(here[chunk], columns[added[place], chunk], added_multiplier[place])
        if len(allowed) > 0:
            _clear_excluded(here, allowed[first : first + len(here)])
        if floor == 1:
            floor = max(floor, np.int64((_lane_bound(here, k) + adding - slack) * share))
        before = found
        needed = floor - adding
        for lane in range(0, len(here), LANES):
            lane_end = min(lane + LANES, len(here))
            if np.int64(_maximum(here[lane:lane_end])) < needed:
                continue
            if found + LANES > len(rows):
                rows = np.append(rows, np.empty(len(rows), np.int64))
                bounds = np.append(bounds, np.empty(len(bounds), np.int64))
            for document in range(lane, lane_end):
                if np.int64(here[document]) < needed or (len(allowed) > 0 and not allowed[first + document]):
                    continue
                rows[found] = first + document
                bounds[found] = np.int64(here[document]) + adding
                found += 1
        if found >= k and found > before:
            floor = max(floor, np.int64((_kth_bound(bounds[:found], k) - slack) * share))
            kept = 0
            for place in range(found):
                if bounds[place] >= floor:
                    rows[kept] = rows[place]
                    bounds[kept] = bounds[place]
                    kept += 1
            found = kept
    return rows[:found], bounds[:found]


@njit(cache=True, nogil=True)
def _kth_largest(values: Array, k: int) -> Any:
    return np.partition(values, len(values) - k)[len(values) - k]


@njit(cache=True, nogil=True)
def _score_row(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    saturation: Any,
    row: int,
    query_ids: Array,
    query_weights: Array,
    marks: Array,
) -> float:
    """Σ query weight · document weight over shared tokens, added in float64 by ascending token id."""
    lengths, base, slope = saturation
    norm = base + slope * lengths[row] if len(lengths) > 0 else 0.0
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


@njit(cache=True, nogil=True)
def _marks_of(query_ids: Array) -> Array:
    """The slots of the query's tokens, bool[MARKS]."""
    marks = np.zeros(MARKS, np.bool_)
    for token in query_ids:
        marks[token & (MARKS - 1)] = True
    return marks


@njit(cache=True, nogil=True)
def score_rows(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    saturation: Any,
    rows: Array,
    query_ids: Array,
    query_weights: Array,
) -> Array:
    """Exact scores float64[K] of rows int64[K]; query_ids: int32, ascending; query_weights: float32."""
    marks = _marks_of(query_ids)
    scores = np.empty(len(rows), np.float64)
    for place in range(len(rows)):
        scores[place] = _score_row(
            indptr, token_ids, weights, saturation, rows[place], query_ids, query_weights, marks
        )
    return scores


@njit(cache=True, nogil=True)
def _read_ahead(indptr: Array, token_ids: Array, weights: Array, rows: Array) -> Any:
    """Bring rows into the cache: with nothing to decide, the processor waits for many of them at once."""
    seen = 0.0
    for row in rows:
        for position in range(indptr[row], indptr[row + 1], LINE):
            seen += token_ids[position] + weights[position]
    return seen


@njit(cache=True, nogil=True)
def score_candidates(
    indptr: Array,
    token_ids: Array,
    weights: Array,
    saturation: Any,
    rows: Array,
    bounds: Array,
    unit: float,
    query_ids: Array,
    query_weights: Array,
    k: int,
) -> tuple[Array, Array]:
    """Exact scores of candidates; keeps the k best and all that tie with the k-th, if above 0.

    rows: int64[K], ascending; bounds: int64[K], where bound · unit is at least the exact score; query_ids:
    int32, ascending. Rows whose bound is below the exact k-th score are not scored. Returns rows int64 and
    scores float32, best first, equal scores by row.
    """
    if np.isnan(
        _read_ahead(indptr, token_ids, weights, rows)
    ):  # never; but an unused result is compiled away
        return rows[:0], np.empty(0, np.float32)
    marks = _marks_of(query_ids)
    scores = np.zeros(len(rows), np.float32)
    threshold = np.float32(0)
    scored_from = np.int64(0) if len(rows) <= k else np.int64(_kth_bound(bounds, k))
    for place in range(len(rows)):
        if bounds[place] >= scored_from:
            score = _score_row(
                indptr, token_ids, weights, saturation, rows[place], query_ids, query_weights, marks
            )
            scores[place] = min(score, LARGEST_SCORE)
    if len(rows) > k:
        threshold = _kth_largest(scores, k)
        for place in range(len(rows)):
            if bounds[place] < scored_from and bounds[place] * unit * (1 + 1e-6) >= threshold:
                score = _score_row(
                    indptr, token_ids, weights, saturation, rows[place], query_ids, query_weights, marks
                )
                scores[place] = min(score, LARGEST_SCORE)
        threshold = _kth_largest(scores, k)
    kept = np.flatnonzero((scores >= threshold) & (scores > 0))
    kept = kept[np.argsort(-scores[kept], kind="mergesort")]
    return rows[kept], scores[kept]
