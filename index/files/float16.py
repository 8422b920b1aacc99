"""Stored float16 as float32: the same values, several times as fast as NumPy converts them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.native.kernels import widen_rows
from models.representations import Float32, Int64


def rows_as_float32(stored: npt.NDArray[np.float16], rows: Int64) -> Float32:
    """The given rows of float16[N, D] as float32[K, D]. Raises DamagedIndexError for one outside of N."""
    values = np.empty((len(rows), stored.shape[1]), np.float32)
    widen_rows(stored, rows, values)
    return values
