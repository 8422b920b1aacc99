"""The `.npy` format of the index's arrays: format 1.0, little-endian, with a header of exactly 128 bytes.

So an array of unknown length can be streamed and its header written last. `numpy.load` reads such files. We
do not call it: it has Python's `ast` parse the header, which in Python 3.11 may fail where two threads
do so at once.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.errors import damaged
from tercet.index.files.arrays import Array

HEADER_BYTES = 128
_TEXT = re.compile(
    rb".{10}\{'descr': '([^']+)', 'fortran_order': False, 'shape': \(([\d, ]+)\), \} *\n", re.DOTALL
)


def npy_header(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The 128 bytes before the values of an array of this dtype and shape."""
    text = f"{{'descr': {np.dtype(dtype).str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"


def type_and_shape(header: bytes, path: Path) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """What `npy_header` was given. Raises DamagedIndexError, naming the file, for what it did not write."""
    match = _TEXT.fullmatch(header)
    if match is None:
        raise damaged(path, "is not an array of this index")
    return np.dtype(match[1].decode()), tuple(int(length) for length in match[2].split(b",") if length)


def row_bytes(dtype: npt.DTypeLike, row_shape: tuple[int, ...]) -> int:
    return np.dtype(dtype).itemsize * math.prod(row_shape)


def array_in(
    content: memoryview, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...], rows: int | None
) -> Array:
    """The array [rows, *row_shape] that a whole file holds, over the same memory. rows: None takes what fits.

    Raises DamagedIndexError, naming the file, where its header or size differ.
    """
    size, bytes_per_row = len(content), row_bytes(dtype, row_shape)
    count = max(0, size - HEADER_BYTES) // bytes_per_row if rows is None else rows
    shape, expected = (count, *row_shape), HEADER_BYTES + count * bytes_per_row
    if size != expected:
        raise damaged(
            path,
            f"has {size} bytes, but an array of shape {shape} and type {np.dtype(dtype)} has {expected}",
        )
    if content[:HEADER_BYTES] != npy_header(dtype, shape):
        raise damaged(path, f"is not an array of shape {shape} and type {np.dtype(dtype)}")
    if count == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(content, dtype, offset=HEADER_BYTES).reshape(shape)
