"""The `.npy` format of the index's arrays: format 1.0, little-endian, with a header of exactly 128 bytes.

So an array of unknown length can be streamed and its header written last. `numpy.load` reads such files;
we compare the header with the one expected instead of parsing it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from index.errors import damaged
from index.files.arrays import Array

HEADER_BYTES = 128


def npy_header(dtype: npt.DTypeLike, shape: tuple[int, ...]) -> bytes:
    """The 128 bytes before the values of an array of this dtype and shape."""
    text = f"{{'descr': {np.dtype(dtype).str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    length = HEADER_BYTES - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"


def row_bytes(dtype: npt.DTypeLike, row_shape: tuple[int, ...]) -> int:
    return np.dtype(dtype).itemsize * math.prod(row_shape)


def array_in(
    content: memoryview, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...], rows: int | None
) -> Array:
    """The array [rows, *row_shape] that a whole file holds, over the same memory. rows: None takes what fits.

    Raises DamagedIndexError, naming the file, where its header or size differ.
    """
    size, each = len(content), row_bytes(dtype, row_shape)
    count = max(0, size - HEADER_BYTES) // each if rows is None else rows
    shape, expected = (count, *row_shape), HEADER_BYTES + count * each
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
