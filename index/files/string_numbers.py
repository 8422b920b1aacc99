"""Distinct byte strings, numbered as they come, and packed in ascending order once all are known."""

from __future__ import annotations

import numpy as np

from tercet.index.files.arrays import ArrayTarget
from tercet.index.files.packed_bytes import PackedBytes, PackedBytesWriter
from tercet.models.representations import Int32

STRING_BYTES = 150  # about what a distinct string takes in memory beside its bytes
STRINGS_AT_ONCE = 65_536


class StringNumbers:
    """The number of each string while a segment is written: in order of first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.buffered_bytes = 0

    def of(self, strings: PackedBytes, indices: Int32) -> Int32:
        """The numbers of the strings at `indices` int32[P]: int32[P]. New ones get the next."""
        used, inverse = np.unique(indices, return_inverse=True)
        taken = strings.take(used)
        before = len(self._numbers)
        numbers = np.fromiter(
            (self._numbers.setdefault(string, len(self._numbers)) for string in taken),
            np.int32,
            len(taken),
        )
        new = numbers >= before
        lengths = strings.offsets[used + 1] - strings.offsets[used]
        self.buffered_bytes += int(lengths[new].sum()) + STRING_BYTES * int(new.sum())
        return numbers[inverse]

    def write(self, arrays: ArrayTarget, stem: str) -> Int32:
        """Writes the strings in ascending order and forgets them; gives the rank of each in it, int32[X], by
        its number.
        """
        ordered = sorted(self._numbers)
        writer = PackedBytesWriter(arrays, stem)
        for start in range(0, len(ordered), STRINGS_AT_ONCE):
            writer.append(PackedBytes.of(ordered[start : start + STRINGS_AT_ONCE]))
        writer.finish()
        ranks = np.empty(len(ordered), np.int32)
        ranks[np.fromiter(map(self._numbers.__getitem__, ordered), np.int32, len(ordered))] = np.arange(
            len(ordered), dtype=np.int32
        )
        self._numbers.clear()
        self.buffered_bytes = 0
        return ranks
