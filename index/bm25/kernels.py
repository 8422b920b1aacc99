"""Compiled loops over packed terms; compiled and cached like those of `index/sparse/kernels.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def _compared(left: Array, right: Array) -> Any:
    """Below 0, 0 or above 0, as the bytes on the left come before, equal or come after those on the right."""
    for position in range(min(len(left), len(right))):
        if left[position] != right[position]:
            return np.int64(left[position]) - np.int64(right[position])
    return len(left) - len(right)


@njit(cache=True, nogil=True)
def find_packed(data: Array, offsets: Array, wanted: Array, wanted_offsets: Array) -> Array:
    """The place of each of T wanted byte strings among X ascending ones, int32[T]; -1 where it is not there.

    data, wanted: uint8, packed; offsets: int64[X+1]; wanted_offsets: int64[T+1].
    """
    places = np.full(len(wanted_offsets) - 1, -1, np.int32)
    for term in range(len(places)):
        sought = wanted[wanted_offsets[term] : wanted_offsets[term + 1]]
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            order = _compared(data[offsets[middle] : offsets[middle + 1]], sought)
            if order == 0:
                places[term] = middle
                break
            if order < 0:
                low = middle + 1
            else:
                high = middle
    return places
