"""Dense vectors of many segments compared with a query in one compiled call, for the best of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.dense.half_products import HALF_BYTES, product
from index.documents.row_set import RowSet
from index.files.addresses import AHEAD, address_of, array_at, bring_near
from index.selection import kth_largest
from models.representations import Bool, Float32, Int64

ROWS_AT_ONCE = 16_384  # of a segment, by one thread before it takes others
FEW_ROWS = 32  # one row in so many, or fewer, is taken by its number rather than by going through all

STRETCH = np.dtype([(name, np.int64) for name in ("segment", "vectors", "first", "last", "numbers", "mask")])
"""Rows of a segment: its place, where its vectors lie, and from which row to which. Where `numbers` is not 0
rows are those at these places of the int64 there; where `mask` is not 0, only those that are true in the
bool[N] there.
"""

Array = npt.NDArray[Any]
Found = tuple[Int64, Int64, Float32]
"""Segments int64[K], rows int64[K] and scores float32[K]."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A segment that is compared as a whole: its place, where its N vectors lie, and which rows count, None
    for all.
    """

    place: int
    address: int
    documents: int
    allowed: RowSet | Bool | None


class DenseScan:
    """A comparison of a query float32[D] with float16[N, D] of some segments, which have to stay until it is
    done; threads may take some of the work each.
    """

    def __init__(self, segments: Sequence[Scanned], query: Float32, k: int) -> None:
        """k: how many of the best are wanted."""
        self._query = np.ascontiguousarray(query, np.float32)
        self._k = k
        self._floors = np.full(1, -np.inf, np.float32)
        self._held: list[Array] = []  # what has to stay as long as its address
        stretches: list[tuple[int, ...]] = []
        for segment in segments:
            numbers, mask, count = self._allowed(segment)
            stretches += [
                (segment.place, segment.address, first, min(first + ROWS_AT_ONCE, count), numbers, mask)
                for first in range(0, count, ROWS_AT_ONCE)
            ]
        table = np.array(stretches, STRETCH)
        rows = np.cumsum(table["last"] - table["first"])
        self._parts = np.split(table, _edges(rows)) if len(table) else []

    @property
    def costs(self) -> list[int]:
        """How many rows each part has."""
        return [int((part["last"] - part["first"]).sum()) for part in self._parts]

    def find(self, part: int) -> Found:
        """What may be among the k best of all, and all that tie with the last, in one part."""
        dimension = len(self._query)
        found: Found = scan(self._parts[part], dimension, self._query, self._k, self._floors)
        return found

    def _allowed(self, segment: Scanned) -> tuple[int, int, int]:
        """Where the numbers of rows lie, or a mask of them, and how many there are to go through."""
        allowed, documents = segment.allowed, segment.documents
        if allowed is None:
            return 0, 0, documents
        if isinstance(allowed, RowSet):
            if len(allowed) * FEW_ROWS <= documents:
                numbers = np.ascontiguousarray(allowed.rows)
                self._held.append(numbers)
                return address_of(numbers, np.int64), 0, len(numbers)
            allowed = allowed.mask
        self._held.append(allowed)
        return 0, address_of(allowed, np.bool_), documents


def _edges(lengths: Int64) -> Int64:
    """Where parts of about `ROWS_AT_ONCE` rows begin; lengths: of all stretches up to each."""
    marks = lengths // ROWS_AT_ONCE
    return np.flatnonzero(marks[1:] != marks[:-1]) + 1


@compiled(nogil=True)
def _chosen(numbers: int, mask: int, first: int, last: int) -> Array:
    """The rows of a stretch where it has numbers or a mask; none where all count."""
    if numbers:
        given: Array = array_at(numbers, last, np.int64)[first:last]
        return given
    if not mask:
        return np.empty(0, np.int64)
    allowed, rows, count = array_at(mask, last, np.bool_), np.empty(last - first, np.int64), 0
    for row in range(first, last):
        rows[count] = row
        count += allowed[row]
    return rows[:count]


@compiled(nogil=True)
def scan(stretches: Array, dimension: int, query: Array, k: int, floors: Array) -> tuple[Array, Array, Array]:
    """The rows of some stretches that may be among the k best: segments int64[K], rows int64[K], scores
    float32[K].

    floors: float32[1], of k rows the lowest score, the highest that is known; raised, also by other threads.
    """
    room = 4 * k + 64
    segments, rows, scores = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float32)
    found, enough, size = 0, 2 * k, HALF_BYTES * dimension
    floor = floors[0]
    for place in range(len(stretches)):
        stretch = stretches[place]
        chosen = _chosen(stretch.numbers, stretch.mask, stretch.first, stretch.last)
        floor = max(floor, floors[0])
        count = len(chosen) if stretch.numbers or stretch.mask else stretch.last - stretch.first
        for number in range(count):
            row: Any = np.int64(stretch.first + number)
            if len(chosen):
                bring_near(stretch.vectors + size * chosen[min(number + AHEAD, count - 1)], size)
                row = chosen[number]
            score = product(stretch.vectors + size * row, dimension, query.ctypes)
            if score < floor:
                continue
            if found == len(rows):
                segments = np.append(segments, np.empty(found, np.int64))
                rows = np.append(rows, np.empty(found, np.int64))
                scores = np.append(scores, np.empty(found, np.float32))
            segments[found], rows[found], scores[found] = stretch.segment, row, score
            found += 1
            if found == enough:
                floor = max(floor, kth_largest(scores[:found], k))
                kept = 0
                for each in range(found):
                    if scores[each] >= floor:
                        segments[kept], rows[kept], scores[kept] = segments[each], rows[each], scores[each]
                        kept += 1
                found = kept
                enough = max(2 * k, 2 * found)  # many may tie with the last
                floors[0] = max(floor, floors[0])
    return segments[:found], rows[:found], scores[:found]
