"""Dense vectors of many segments compared with a query in one compiled call, for the best of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from tercet.index.documents.row_set import RowSet
from tercet.index.native.kernels import Record, scan_vectors
from tercet.models.representations import Bool, Float32, Int64

UInt8 = npt.NDArray[np.uint8]

ROWS_AT_ONCE = 16_384  # of a segment, by one thread before it takes others
FEW_ROWS = 32  # one row in so many, or fewer, is taken by its number rather than by going through all
NO_BITS = -1

SegmentNeighbors = tuple[Int64, Int64, Float32]
"""Segments int64[K], rows int64[K] and scores float32[K]."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A segment that is compared as a whole: its place, a record of `dense_vectors` of N documents, and which
    rows count, None for all.
    """

    ordinal: int
    vectors: Record
    documents: int
    allowed: RowSet | Bool | None


class DenseScan:
    """A comparison of a query float32[D] with float16[N, D] of some segments. costs: rows of each part."""

    def __init__(self, segments: Sequence[Scanned], query: Float32, k: int) -> None:
        """k: how many of the best are wanted."""
        self._query = np.ascontiguousarray(query, np.float32)
        self._k = k
        self._floor = np.full(1, -np.inf, np.float32)
        self._vectors = tuple(segment.vectors for segment in segments)
        chosen = _Chosen()
        stretches: list[tuple[int, ...]] = []
        for number, segment in enumerate(segments):
            start, stop, numbered, bits = chosen.add(segment)
            stretches += [
                (segment.ordinal, number, first, min(first + ROWS_AT_ONCE, stop), numbered, bits)
                for first in range(start, stop, ROWS_AT_ONCE)
            ]
        self._numbers, self._bits = chosen.joined()
        table = np.array(stretches, np.int64).reshape(-1, 6)
        lengths = table[:, 3] - table[:, 2]
        edges = _edges(np.cumsum(lengths))
        self._stretches = np.split(table, edges) if len(table) else []
        self.costs = [int(part.sum()) for part in np.split(lengths, edges)] if len(table) else []

    @property
    def parts(self) -> list[Callable[[], SegmentNeighbors]]:
        """What compares some of the rows each, for threads to take."""
        return [partial(self.find, stretches) for stretches in self._stretches]

    def find(self, stretches: Int64) -> SegmentNeighbors:
        """What may be among the k best of all, and all that tie with the last, in some stretches of rows."""
        return scan_vectors(
            self._vectors, stretches, self._numbers, self._bits, self._query, self._k, self._floor
        )


class _Chosen:
    """The rows of segments of which not all count: numbers where they are few, else a bit for each."""

    def __init__(self) -> None:
        self._numbers: list[Int64] = []
        self._bits: list[UInt8] = []
        self._number_count = self._byte_count = 0

    def add(self, segment: Scanned) -> tuple[int, int, int, int]:
        """From where to where to go, whether that is among numbers, and where the bits of all rows begin."""
        allowed = segment.allowed
        if allowed is None:
            return 0, segment.documents, 0, NO_BITS
        if isinstance(allowed, RowSet) and len(allowed) * FEW_ROWS <= segment.documents:
            start = self._number_count
            self._numbers.append(allowed.rows)
            self._number_count += len(allowed)
            return start, self._number_count, 1, NO_BITS
        begin = self._byte_count
        bits = allowed.packed if isinstance(allowed, RowSet) else np.packbits(allowed, bitorder="little")
        self._bits.append(bits)
        self._byte_count += len(bits)
        return 0, segment.documents, 0, begin

    def joined(self) -> tuple[Int64, UInt8]:
        return (
            np.concatenate([np.empty(0, np.int64), *self._numbers]),
            np.concatenate([np.empty(0, np.uint8), *self._bits]),
        )


def _edges(lengths: Int64) -> Int64:
    """Where parts of about `ROWS_AT_ONCE` rows begin; lengths: of all stretches up to each."""
    marks = lengths // ROWS_AT_ONCE
    return np.flatnonzero(marks[1:] != marks[:-1]) + 1
