"""The terms of a segment, numbered: `bm25_terms.npy` and its offsets hold them in ascending order.

Every distinct term has a number of its own, its place in this order, and is found by binary search. A hash
would save that, but take some terms for others. In whatever segment, a document's terms have the same order,
so its score is added up in the same order.
"""

from __future__ import annotations

import numpy as np

from index.files.arrays import ArraySource, ArrayTarget
from index.files.packed_bytes import PackedBytes, PackedBytesWriter
from models.representations import Int32

STEM = "bm25_terms"
TERM_BYTES = 150  # about what a distinct term takes in memory beside its bytes
TERMS_AT_ONCE = 65_536


class TermNumbers:
    """The number of each term while a segment is written: in order of first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.held_bytes = 0

    def of(self, terms: PackedBytes, places: Int32) -> Int32:
        """The numbers of the terms at `places` int32[P]: int32[P]. New ones get the next."""
        used, inverse = np.unique(places, return_inverse=True)
        strings = terms.take(used)
        before = len(self._numbers)
        numbers = np.fromiter(
            (self._numbers.setdefault(term, len(self._numbers)) for term in strings), np.int32, len(strings)
        )
        new = numbers >= before
        lengths = terms.offsets[used + 1] - terms.offsets[used]
        self.held_bytes += int(lengths[new].sum()) + TERM_BYTES * int(new.sum())
        return numbers[inverse]

    def clear(self) -> None:
        """Forgets the terms."""
        self._numbers.clear()
        self.held_bytes = 0

    def write(self, arrays: ArrayTarget) -> Int32:
        """Writes the terms in ascending order; returns each one's place in it, int32[X], by its number."""
        ordered = sorted(self._numbers)
        writer = PackedBytesWriter(arrays, STEM)
        for start in range(0, len(ordered), TERMS_AT_ONCE):
            writer.append(PackedBytes.of(ordered[start : start + TERMS_AT_ONCE]))
        writer.finish()
        places = np.empty(len(ordered), np.int32)
        places[np.fromiter(map(self._numbers.__getitem__, ordered), np.int32, len(ordered))] = np.arange(
            len(ordered), dtype=np.int32
        )
        return places


def open_terms(arrays: ArraySource) -> PackedBytes:
    """Opens the terms of a segment. Raises DamagedIndexError naming the file."""
    return PackedBytes.open(arrays, STEM)
