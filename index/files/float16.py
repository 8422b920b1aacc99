"""Stored float16 as float32: the same values, several times as fast as NumPy converts them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.compiled import compiled
from index.files.arrays import frozen
from models.representations import Float32, Int64

# Bits of a float16 shifted to their places in a float32 lack the difference of the exponents' biases.
BIAS = np.float32(2.0**112)


def rows_as_float32(stored: npt.NDArray[np.float16], rows: Int64) -> Float32:
    """The given rows of float16[N, D] as float32[n, D]; rows must lie within. Values must be finite."""
    values = np.empty((len(rows), stored.shape[1]), np.float32)
    _place_bits(frozen(stored.view(np.uint16)), rows, values.view(np.uint32))
    values *= BIAS
    return values


@compiled(nogil=True)
def _place_bits(stored: npt.NDArray[np.uint16], rows: Int64, bits: npt.NDArray[np.uint32]) -> None:
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(stored.shape[1]):
            half = np.uint32(stored[row, j])
            bits[i, j] = ((half & np.uint32(0x8000)) << np.uint32(16)) | (
                (half & np.uint32(0x7FFF)) << np.uint32(13)
            )
