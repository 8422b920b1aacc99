"""Some of the rows of a segment, in the form that each retriever wants."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from pyroaring import AbstractBitMap

from tercet.index.documents.bitmaps import packed_of
from tercet.models.representations import Bool, Int64

UInt8 = npt.NDArray[np.uint8]

# From one row in so many on, a bit for each row of the segment takes less than a number for each of the set.
ROWS_PER_NUMBER = 64


class RowSet:
    """`len(rows)` of N rows, as numbers where they are few, else as bits; immutable."""

    __slots__ = ("_count", "_numbers", "_packed", "documents")

    def __init__(self, documents: int, count: int, numbers: Int64 | None, packed: UInt8 | None) -> None:
        self.documents = documents
        self._count = count
        self._numbers = numbers
        self._packed = packed

    @staticmethod
    def of(rows: Int64, documents: int) -> RowSet:
        """Of rows int64[K], distinct and ascending."""
        return RowSet(documents, len(rows), rows, None)

    @staticmethod
    def of_mask(mask: Bool, count: int | None = None) -> RowSet:
        """Where bool[N] is true, in `count` places if that is known."""
        count = int(np.count_nonzero(mask)) if count is None else count
        if _few(count, len(mask)):
            return RowSet.of(np.flatnonzero(mask), len(mask))
        return RowSet(len(mask), count, None, np.packbits(mask, bitorder="little"))

    @staticmethod
    def of_bitmap(bitmap: AbstractBitMap, documents: int) -> RowSet:
        """What a bitmap of rows below `documents` has."""
        if _few(len(bitmap), documents):
            return RowSet.of(np.array(bitmap.to_array(), np.int64), documents)
        return RowSet(documents, len(bitmap), None, packed_of(bitmap, documents))

    def __len__(self) -> int:
        return self._count

    @property
    def few(self) -> bool:
        """Whether numbers are what it holds."""
        return self._numbers is not None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self._numbers, self._packed) if array is not None)

    @property
    def rows(self) -> Int64:
        """int64[K], ascending."""
        return np.flatnonzero(self.mask) if self._numbers is None else self._numbers

    @property
    def mask(self) -> Bool:
        """bool[N]."""
        if self._packed is not None:
            bits = np.unpackbits(self._packed, count=self.documents, bitorder="little")
            return bits.view(np.bool_)
        mask = np.zeros(self.documents, np.bool_)
        mask[self._numbers] = True
        return mask

    @property
    def packed(self) -> UInt8:
        """A bit for each of the N rows, the first of a byte its lowest; uint8[⌈N/8⌉]."""
        return np.packbits(self.mask, bitorder="little") if self._packed is None else self._packed

    def has(self, rows: Int64) -> Bool:
        """Of rows int64[K] each, whether it is in the set: bool[K]."""
        if self._packed is None:
            numbers = self.rows
            indices = np.searchsorted(numbers, rows)
            present: Bool = np.append(numbers, -1)[indices] == rows
            return present
        bits: Bool = (self._packed[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(np.bool_)
        return bits

    def also(self, kept: Bool) -> RowSet:
        """The rows of the set where bool[N] is true as well."""
        if self._numbers is not None:
            return RowSet.of(self._numbers[kept[self._numbers]], self.documents)
        return RowSet.of_mask(self.mask & kept)


def _few(count: int, documents: int) -> bool:
    return count * ROWS_PER_NUMBER <= documents
