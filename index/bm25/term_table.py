"""The terms of many segments: where each lies among those of every segment, in one compiled call."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.native.kernels import find_terms
from tercet.index.native.kernels import terms as terms_of
from tercet.models.representations import Int32, Int64

UInt64 = npt.NDArray[np.uint64]


class TermTable:
    """The terms of S segments, ascending, with their beginnings as `find_beginnings` gives them; and of each
    segment int32[X], how many documents have each.
    """

    def __init__(self, segments: Iterable[tuple[PackedBytes, UInt64, Int32]]) -> None:
        self._segments = tuple(
            terms_of(terms.data, terms.offsets, first, counts) for terms, first, counts in segments
        )

    def find(self, wanted: PackedBytes) -> tuple[Int32, Int64]:
        """The number of each of T terms in each segment, int32[S, T], -1 where it is not there; and how many
        documents have it in all, int64[T].
        """
        numbers = np.empty((len(self._segments), len(wanted)), np.int32)
        frequencies = np.zeros(len(wanted), np.int64)
        find_terms(self._segments, wanted.data, wanted.offsets, numbers, frequencies)
        return numbers, frequencies
