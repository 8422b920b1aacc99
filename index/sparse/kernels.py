"""Compiled loops of a search in inverted indexes: bounds of scores, and what may be among the best.

Every function is a pure function of arrays, but for work space that it is given, and releases the GIL. It is
compiled on first use and cached on disk beside this file; where that folder is read-only, Numba uses the
cache folder of the user, or the one that the variable NUMBA_CACHE_DIR names. Importing compiles nothing.
To Numba a read-only array is another type than a writable one: callers pass the same at every call, so each
function is compiled once (those that take accumulators twice, for their two widths).

Letters: S segments, N documents of one, T terms of the query, K candidates. An *entry* is one term in one
block of `BLOCK` documents. `indexes` is a table of S records `INDEX`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.addresses import array_at
from index.sparse.score_kernels import kth_bound

BLOCK = 32_768  # documents of a block, fixed by the format; 64 KiB of accumulators stay in cache
PLACES = 65_536  # in a block that a posting's 16 bits can name
LANES = 2_048  # of a block's accumulators so far apart the maximum is looked at before any single one is
CHUNK = 4_096  # accumulators to which all columns are added while they stay in the first-level cache
NARROW_TERMS = 64  # more known terms than these get 32-bit accumulators, where rounding weighs as little
NARROW_LIMIT = 65_535
WIDE_LIMIT = 4_294_967_295
LARGEST_MULTIPLE = 65_000  # largest 255 c / unit of one term, so that its multiplier fits 16 bits

ADDRESSES = (
    "terms",
    "largest",
    "term_entries",
    "entry_block",
    "entry_start",
    "entry_column",
    "documents",
    "impacts",
    "columns",
    "indptr",
    "token_ids",
    "weights",
    "lengths",
)
SIZES = ("term_count", "column_count", "column_length", "size")
INDEX = np.dtype([(name, np.int64) for name in (*ADDRESSES, *SIZES)])
"""One inverted index: where its arrays and those of the forward rows lie, `lengths` only where these hold
frequencies, else 0; its terms, its columns and their length, and its documents."""

Array = npt.NDArray[Any]


@compiled(nogil=True)
def quantize_query(indexes: Array, terms: Array, weights: Array, most: Array) -> tuple[Any, ...]:
    """Integer multipliers of the query's terms in each segment, such that no sum of bounds can overflow.

    terms: int32[S, T], as each segment numbers them, ascending, -1 for one that it lacks; weights:
    float32[T], above 0; most: float64[S], what weights of a segment are at most of those of its index.
    Returns the terms' places in the directories int64[S, T], -1 for one not there; multipliers uint16[S, T] =
    ⌈256 c / unit⌉, with c = query weight · most · largest weight / 255; the unit, the same for all segments;
    the slack Σ(c / unit + 2), each c the largest of all segments, rounded up; and whether sums fit 16 bits.
    """
    places = np.full(terms.shape, -1, np.int64)
    steps = np.zeros(terms.shape, np.float64)
    largest_steps = np.zeros(terms.shape[1], np.float64)
    for segment in range(len(indexes)):
        index = indexes[segment]
        known_terms = array_at(index.terms, index.term_count, np.int32)
        largest = array_at(index.largest, index.term_count, np.float32)
        for number in range(terms.shape[1]):
            place = np.int64(terms[segment, number])
            if place < 0:
                continue
            # Words are numbered by their places, so that nothing has to be searched for.
            if place >= len(known_terms) or known_terms[place] != terms[segment, number]:
                place = np.searchsorted(known_terms, terms[segment, number])
            if place < len(known_terms) and known_terms[place] == terms[segment, number]:
                places[segment, number] = place
                step = np.float64(weights[number]) * most[segment] * np.float64(largest[place]) / 255
                steps[segment, number] = step
                largest_steps[number] = max(largest_steps[number], step)
    known, total, largest_step = 0, 0.0, 0.0
    for step in largest_steps:
        known += 1 if step > 0 else 0
        total += step
        largest_step = max(largest_step, step)
    multipliers = np.zeros(terms.shape, np.uint16)
    if known == 0:
        return places, multipliers, 1.0, 0, True
    narrow = known <= NARROW_TERMS
    limit = (NARROW_LIMIT if narrow else WIDE_LIMIT) - 2 * known
    unit = max(total * 255 / limit, largest_step * 255 / LARGEST_MULTIPLE)
    for segment in range(len(indexes)):
        for number in range(terms.shape[1]):
            multipliers[segment, number] = np.uint16(np.ceil(steps[segment, number] * (256 / unit)))
    return places, multipliers, unit, np.int64(np.ceil(total / unit)) + 2 * known + 1, narrow


@compiled(nogil=True)
def _add_postings(accumulators: Array, documents: Array, impacts: Array, multiplier: int) -> None:
    """Add floor(impact · multiplier / 256) + 1 where the term occurs."""
    for position in range(len(documents)):
        product = np.uint32(impacts[position]) * np.uint32(multiplier)
        accumulators[documents[position]] += np.uint16((product >> np.uint32(8)) + np.uint32(1))


@compiled(nogil=True)
def _add_column(accumulators: Array, column: Array, multiplier: int) -> None:
    """Add floor(impact · multiplier / 256) everywhere; 16-bit steps let one instruction do sixteen."""
    high = np.uint16(multiplier >> np.uint16(8))
    low = np.uint16(multiplier & np.uint16(255))
    for document in range(len(column)):
        impact = np.uint16(column[document])
        rest = np.uint16(np.uint16(impact * low) >> np.uint16(8))
        accumulators[document] += np.uint16(impact * high) + rest


@compiled(nogil=True)
def _clear_excluded(accumulators: Array, allowed: Array) -> None:
    for document in range(len(accumulators)):
        accumulators[document] *= np.uint16(allowed[document])


@compiled(nogil=True)
def _lane_maxima(accumulators: Array, maxima: Array) -> Any:
    """The largest of the accumulators `LANES` apart from each of the first ones, in maxima; how many lanes.

    One vector of accumulators after the other is compared with what the vectors before had.
    """
    lanes = min(LANES, len(accumulators))
    for lane in range(lanes):
        maxima[lane] = accumulators[lane]
    for start in range(LANES, len(accumulators), LANES):
        row = accumulators[start : start + LANES]
        for lane in range(len(row)):
            maxima[lane] = row[lane] if row[lane] > maxima[lane] else maxima[lane]
    return lanes


@compiled(nogil=True)
def find_candidates(
    indexes: Array,
    places: Array,
    multipliers: Array,
    slack: int,
    shares: Array,
    k: int,
    masks: Array,
    first_segment: int,
    last_segment: int,
    floors: Array,
    accumulators: Array,
) -> tuple[Array, Array, Array]:
    """Every document of some segments whose bound is above 0 and may be that of one of the k best.

    A document's bound is the sum over its terms of floor(impact · multiplier / 256) + 1; for terms with a
    column the 1 is added whether or not the document has the term. Its exact score is at least
    share · (bound - slack) units; of k documents that have so much, the least is the floor, which the bounds
    of all others have to reach.

    places: int64[S, T], of terms in the directories, or -1; multipliers: uint16[S, T]; shares: float64[S];
    masks: int64[S], where the bool[N] lie that say which documents may be found, or 0 for all; floors:
    int64[1], the highest floor so far, at least 1, which is raised: later calls begin with it, and those of
    other threads go on with it; accumulators: uint16 or uint32[65536], work space.
    Returns segments int64[K], ascending, rows int64[K] and bounds int64[K].
    """
    maxima, passed = np.empty(LANES, accumulators.dtype), np.empty(LANES, np.int64)
    segments, rows = np.empty(4096, np.int64), np.empty(4096, np.int64)
    bounds, least = np.empty(4096, np.int64), np.empty(4096, np.int64)
    found = 0
    terms = places.shape[1]
    cursors, ends = np.empty(terms, np.int64), np.empty(terms, np.int64)
    added = np.empty(terms, np.int64)  # columns of the block
    added_multiplier = np.empty(terms, np.uint16)
    for segment in range(first_segment, last_segment):
        index, share = indexes[segment], shares[segment]
        term_entries = array_at(index.term_entries, index.term_count + 1, np.int64)
        entries = term_entries[index.term_count]
        entry_block = array_at(index.entry_block, entries, np.int32)
        entry_start = array_at(index.entry_start, entries + 1, np.int64)
        entry_column = array_at(index.entry_column, entries, np.int32)
        documents = array_at(index.documents, entry_start[entries], np.uint16)
        impacts = array_at(index.impacts, entry_start[entries], np.uint8)
        columns = array_at(index.columns, index.column_count * index.column_length, np.uint8)
        allowed = array_at(masks[segment], index.size if masks[segment] else 0, np.bool_)
        known = 0
        for number in range(terms):
            place = places[segment, number]
            if place >= 0:
                cursors[number], ends[number] = term_entries[place], term_entries[place + 1]
                known += 1
            else:
                cursors[number] = ends[number] = 0
        if known == 0:
            continue
        for block in range((index.size + BLOCK - 1) // BLOCK):
            first = block * BLOCK
            here = accumulators[: min(BLOCK, index.size - first)]
            here[:] = 0
            touched, adding = False, 0
            for number in range(terms):
                entry = cursors[number]
                if entry == ends[number] or entry_block[entry] != block:
                    continue
                cursors[number] += 1
                touched = True
                if entry_column[entry] < 0:
                    span = slice(entry_start[entry], entry_start[entry + 1])
                    _add_postings(here, documents[span], impacts[span], multipliers[segment, number])
                else:
                    added[adding] = entry_column[entry] * index.column_length
                    added_multiplier[adding] = multipliers[segment, number]
                    adding += 1
            if not touched:
                continue
            for start in range(0, len(here), CHUNK):
                stop = min(start + CHUNK, len(here))
                for number in range(adding):
                    column = columns[added[number] + start : added[number] + stop]
                    _add_column(here[start:stop], column, added_multiplier[number])
            if len(allowed) > 0:
                _clear_excluded(here, allowed[first : first + len(here)])
            lanes = _lane_maxima(here, maxima)
            floor = floors[0]
            if floor == 1 and lanes >= k:
                reached = kth_bound(maxima[:lanes].astype(np.int64), k) + adding
                floor = max(floor, np.int64((reached - slack) * share))
            # Without branches, as a processor cannot foresee which documents pass.
            needed = max(floor - adding, 0)
            passing = 0
            for lane in range(lanes):
                passed[passing] = lane
                passing += maxima[lane] >= needed
            most_found = found + passing * (BLOCK // LANES)
            if most_found >= len(rows):
                room = np.empty(most_found, np.int64)
                segments, rows = np.append(segments, room), np.append(rows, room)
                bounds, least = np.append(bounds, room), np.append(least, room)
            before = found
            for lane in passed[:passing]:
                for document in range(lane, len(here), LANES):
                    rows[found] = first + document
                    found += (here[document] >= needed) & (len(allowed) == 0 or allowed[first + document])
            for place in range(before, found):
                segments[place] = segment
                bounds[place] = np.int64(here[rows[place] - first]) + adding
                least[place] = np.int64((bounds[place] - slack) * share)
            if found >= k and found > before:
                floor = max(floor, kth_bound(least[:found], k))
                kept = 0
                for place in range(found):
                    segments[kept], rows[kept] = segments[place], rows[place]
                    bounds[kept], least[kept] = bounds[place], least[place]
                    kept += bounds[place] >= floor
                found = kept
            if floor > floors[0]:
                floors[0] = floor
    return segments[:found], rows[:found], bounds[:found]
