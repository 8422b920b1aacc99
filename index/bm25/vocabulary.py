"""The terms of a segment, numbered: `bm25_terms.npy` and its offsets hold them in ascending order.

Every distinct term has a number of its own, its place in this order, and is found by binary search. A hash
would save that, but take some terms for others. In whatever segment, a document's terms have the same order,
so its score is added up in the same order.
"""

from __future__ import annotations

import numpy as np

from index.bm25.analysis import Analyzer
from index.bm25.kernels import find_packed
from index.files.arrays import ArraySource, ArrayTarget, frozen
from index.files.packed_bytes import PackedBytes, PackedBytesWriter
from models.representations import Int32

STEM = "bm25_terms"
PIECE_BYTES = 200  # about what a distinct piece takes in memory, with its term
TERMS_AT_ONCE = 65_536


class TermNumbers(dict[str, int]):
    """The number of each piece's term while a segment is written: in order of first occurrence.

    A piece that is new is analyzed when it is looked up; every later time costs one look.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__()
        self._analyzer = analyzer
        self._terms: dict[str, int] = {}

    def __missing__(self, piece: str) -> int:
        number = self._terms.setdefault(self._analyzer.term(piece), len(self._terms))
        self[piece] = number
        return number

    @property
    def held_bytes(self) -> int:
        """About how much memory the pieces and terms take."""
        return len(self) * PIECE_BYTES

    def clear(self) -> None:
        """Forgets pieces and terms."""
        super().clear()
        self._terms.clear()

    def write(self, arrays: ArrayTarget) -> Int32:
        """Writes the terms in ascending order; returns each one's place in it, int32[X], by its number."""
        ordered = sorted(self._terms)  # as their UTF-8 bytes, whose order is that of code points
        writer = PackedBytesWriter(arrays, STEM)
        for start in range(0, len(ordered), TERMS_AT_ONCE):
            some = ordered[start : start + TERMS_AT_ONCE]
            writer.append(PackedBytes.of([term.encode() for term in some]))
        writer.finish()
        places = np.empty(len(ordered), np.int32)
        places[np.fromiter(map(self._terms.__getitem__, ordered), np.int32, len(ordered))] = np.arange(
            len(ordered), dtype=np.int32
        )
        return places


def open_terms(arrays: ArraySource) -> PackedBytes:
    """Opens the terms of a segment. Raises DamagedIndexError naming the file."""
    return PackedBytes.open(arrays, STEM)


def find_terms(terms: PackedBytes, wanted: PackedBytes) -> Int32:
    """The place of each of T wanted terms, int32[T]; -1 for one that is not there."""
    arrays = (terms.data, terms.offsets, wanted.data, wanted.offsets)
    places: Int32 = find_packed(*(frozen(array) for array in arrays))
    return places
