"""For each value of a field the rows that have it: the strings of a keyword field, `false` and `true`.

Rows of a value that many documents have are a Roaring bitmap; those of others lie one after another as they
are: a bitmap of a few rows takes more bytes than these, and more than a microsecond to be read. Both are the
better form on their side: 10,000 values of one row each take .1 ms and not 13, and a value that half of a
million documents have .01 ms and not 2.3. The arrays of a segment, whose names begin with the field's:

    _few.npy              int32     rows of the values with few, value by value, ascending
    _few_offsets.npy      int64[S+1]  where those of each value begin
    _bitmaps.npy          uint8     bitmaps of the others, in Roaring's portable format
    _bitmaps_offsets.npy  int64[B+1]
    _bitmap_values.npy    int32[B, 2]  the value of each bitmap, ascending, and how many rows it has
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyroaring import AbstractBitMap, BitMap, FrozenBitMap

from tercet.index.documents.bitmaps import NOTHING, bitmap_of, bitmap_of_ascending
from tercet.index.documents.intervals import counted
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.files.packed_bytes import PackedBytes, PackedBytesWriter, open_offsets
from tercet.index.native.kernels import count_rows, group_rows
from tercet.models.representations import Int32, Int64, offsets_of

FEW_ROWS = 64
FEW_SHARE = 1_024  # documents for one row; where a container has fewer, a bitmap is larger than the rows


@dataclass(frozen=True, slots=True)
class Postings:
    """S values of N documents. few: int32[F]; few_offsets: int64[S+1]; bitmap_values: int32[B, 2]; name: what
    messages call them.
    """

    documents: int
    few: Int32
    few_offsets: Int64
    bitmaps: PackedBytes
    bitmap_values: Int32
    name: str = "postings in memory"

    @staticmethod
    def of(codes: Int32, rows: Int64, values: int, documents: int) -> Postings:
        """Of codes int32[P] and the row of each, int64[P], ascending."""
        counts = count_rows(codes, rows, values)
        offsets = offsets_of(counts)
        grouped = group_rows(codes, rows, offsets)
        many = counts > max(FEW_ROWS, documents // FEW_SHARE)
        bitmaps = []
        for value in np.flatnonzero(many).tolist():
            bitmap = bitmap_of_ascending(grouped[offsets[value] : offsets[value + 1]])
            bitmap.run_optimize()
            bitmaps.append(bitmap.serialize())
        numbered = np.stack([np.flatnonzero(many), counts[many]], axis=1).astype(np.int32)
        few = grouped[np.repeat(~many, counts)]
        return Postings(
            documents, few, offsets_of(np.where(many, 0, counts)), PackedBytes.of(bitmaps), numbered
        )

    @staticmethod
    def open(arrays: ArraySource, stem: str, values: int, documents: int) -> Postings:
        """Opens those of so many values. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(arrays, f"{stem}_few_offsets", values)
        few: Int32 = arrays.open(f"{stem}_few", np.int32, rows=int(offsets[-1]))
        bitmaps = PackedBytes.open(arrays, f"{stem}_bitmaps")
        numbered: Int32 = arrays.open(f"{stem}_bitmap_values", np.int32, (2,), len(bitmaps))
        sound = len(few) == 0 or 0 <= few.min() <= few.max() < documents
        numbers = numbered[:, 0]
        if (
            not sound
            or (np.diff(numbers) <= 0).any()
            or (len(numbers) and not 0 <= numbers[0] <= numbers[-1] < values)
        ):
            raise damaged(
                arrays.path(f"{stem}_few"), f"or {stem}_bitmap_values names a row or value that is not there"
            )
        return Postings(documents, few, offsets, bitmaps, numbered, str(arrays.path(f"{stem}_bitmaps")))

    def write(self, arrays: ArrayTarget, stem: str) -> None:
        arrays.write(f"{stem}_few", self.few)
        arrays.write(f"{stem}_few_offsets", self.few_offsets)
        arrays.write(f"{stem}_bitmap_values", self.bitmap_values)
        writer = PackedBytesWriter(arrays, f"{stem}_bitmaps")
        writer.append(self.bitmaps)
        writer.finish()

    def same(self, other: object) -> bool:
        """Whether these are the same rows of the same values, however bitmaps were written."""
        return (
            isinstance(other, Postings)
            and np.array_equal(self.few, other.few)
            and np.array_equal(self.few_offsets, other.few_offsets)
            and np.array_equal(self.bitmap_values, other.bitmap_values)
            and all(self._bitmap(number) == other._bitmap(number) for number in range(len(self.bitmaps)))
        )

    def count(self, starts: Int64, stops: Int64) -> int:
        """How many rows the values from each start up to its stop have, added up value by value."""
        few = (self.few_offsets[stops] - self.few_offsets[starts]).sum()
        bitmaps = self._bitmaps_within(starts, stops)
        return int(few) + int(self.bitmap_values[bitmaps, 1].sum(dtype=np.int64))

    def rows(self, starts: Int64, stops: Int64) -> AbstractBitMap:
        """The rows that have a value from a start up to its stop; int64[K] both, ascending and apart.

        Raises DamagedIndexError where a bitmap cannot be read.
        """
        bitmaps = [self._bitmap(number) for number in self._bitmaps_within(starts, stops).tolist()]
        first, last = self.few_offsets[starts], self.few_offsets[stops]
        indices = slice(int(first[0]), int(last[0])) if len(starts) == 1 else counted(first, last)
        few = self.few[indices]
        if len(few):
            bitmaps.append(bitmap_of(few, self.documents))
        return bitmaps[0] if len(bitmaps) == 1 else BitMap.union(*bitmaps) if bitmaps else NOTHING

    def _bitmaps_within(self, starts: Int64, stops: Int64) -> Int64:
        values = self.bitmap_values[:, 0]
        return counted(np.searchsorted(values, starts), np.searchsorted(values, stops))

    def _bitmap(self, number: int) -> AbstractBitMap:
        try:
            bitmap = FrozenBitMap.deserialize(self.bitmaps[number])
        except (ValueError, IndexError) as error:
            raise damaged(self.name, f"holds what is no bitmap ({error})") from error
        if not 0 < len(bitmap) == self.bitmap_values[number, 1] or bitmap.max() >= self.documents:
            raise damaged(self.name, "has a bitmap of other rows than were written")
        return bitmap
