"""Compiled loops over packed byte strings; compiled and cached like those of `index/sparse/kernels.py`."""

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
def find_packed(data: Array, offsets: Array, order: Array, wanted: Array, wanted_offsets: Array) -> Array:
    """The place of each of T wanted byte strings among X distinct ones, int64[T]; -1 where it is not there.

    data, wanted: uint8, packed; offsets: int64[X+1]; wanted_offsets: int64[T+1]; order: int64[X], the places
    by ascending string, or int64[0] where the strings themselves ascend.
    """
    places = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for string in range(len(places)):
        sought = wanted[wanted_offsets[string] : wanted_offsets[string + 1]]
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            place = order[middle] if len(order) else np.int64(middle)
            compared = _compared(data[offsets[place] : offsets[place + 1]], sought)
            if compared == 0:
                places[string] = place
                break
            if compared < 0:
                low = middle + 1
            else:
                high = middle
    return places
