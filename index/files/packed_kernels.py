"""Compiled loops over packed byte strings; compiled and cached like those of `index/sparse/kernels.py`.

But for sorting and copying they are over in microseconds, and keep the interpreter's lock: a thread that lets
go of it for so short a time may wait milliseconds to have it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled

Array = npt.NDArray[Any]


@compiled()
def _compared(left: Array, right: Array) -> Any:
    """Below 0, 0 or above 0, as the bytes on the left come before, equal or come after those on the right."""
    for position in range(min(len(left), len(right))):
        if left[position] != right[position]:
            return np.int64(left[position]) - np.int64(right[position])
    return len(left) - len(right)


@compiled()
def find_one(data: Array, offsets: Array, sought: Array, low: int, high: int) -> Any:
    """The place of a byte string among distinct ones that ascend, from place `low` up to `high`; -1 where it
    is not there.
    """
    while low < high:
        middle = (low + high) // 2
        compared = _compared(data[offsets[middle] : offsets[middle + 1]], sought)
        if compared == 0:
            return middle
        if compared < 0:
            low = middle + 1
        else:
            high = middle
    return -1
