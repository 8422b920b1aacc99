"""Compiled loops over the rows of values; kept on the disk as `index/compiled.py` says."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from index.compiled import compiled

Array = npt.NDArray[Any]


@compiled(nogil=True)
def set_bits(rows: Array, packed: Array) -> None:
    """Sets the bit of each of the rows uint32[K] in uint8[⌈N/8⌉], the first of a byte its lowest."""
    for row in rows:
        packed[row >> np.uint32(3)] |= np.uint8(1) << np.uint8(row & np.uint32(7))


@compiled(nogil=True)
def count_rows(codes: Array, rows: Array, values: int) -> Array:
    """How many rows have each value, int64[values]: codes int32[P] and their rows int64[P], ascending."""
    counts, last = np.zeros(values, np.int64), np.full(values, -1, np.int64)
    for place in range(len(codes)):
        code, row = codes[place], rows[place]
        if last[code] != row:  # a list may have a string twice
            counts[code] += 1
            last[code] = row
    return counts


@compiled(nogil=True)
def group_rows(codes: Array, rows: Array, offsets: Array) -> Array:
    """The rows of each value, int32[offsets[-1]], ascending; offsets int64[values+1] of `count_rows`."""
    grouped, ends = np.empty(offsets[-1], np.int32), offsets[:-1].copy()
    for place in range(len(codes)):
        code, row = codes[place], rows[place]
        if ends[code] == offsets[code] or grouped[ends[code] - 1] != row:
            grouped[ends[code]] = row
            ends[code] += 1
    return grouped
