"""Matrices as kernels take them: panels of 16 columns, in which a column has some values side by side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Float32

# As `models/native/panels.h` and `layers.c` have them.
LANES = 16
BYTES, SHORTS = 4, 2
OFFSET = 64
STRIDE_UNIT = 64
SHORT_LEVELS = 4095


def byte_panels(numbers: npt.NDArray[np.int8]) -> npt.NDArray[np.uint8]:
    """A matrix int8[K, 16 P] within ±63 as uint8[P, K'/4, 16, 4], plus OFFSET; K' is a multiple of 64."""
    rows, columns = numbers.shape
    padded = np.full((rows + -rows % STRIDE_UNIT, columns), OFFSET, np.uint8)
    padded[:rows] += numbers.view(np.uint8)  # wraps, so that it is their sum
    return np.ascontiguousarray(padded.reshape(-1, BYTES, columns // LANES, LANES).transpose(2, 0, 3, 1))


def short_panels(weight: Float32) -> tuple[npt.NDArray[np.int16], Float32]:
    """A matrix float32[C, K], a row of it a column of the product, as int16[P, K/2, 16, 2] and the scale of
    each column, float32[P, 16]; columns beyond C are zeros.
    """
    columns, rows = weight.shape
    padded = np.zeros((columns + -columns % LANES, rows), np.float32)
    padded[:columns] = weight
    scales = np.abs(padded).max(axis=1, keepdims=True) / np.float32(SHORT_LEVELS)
    numbers = np.rint(padded / np.where(scales > 0, scales, 1)).astype(np.int16)
    panels = numbers.reshape(-1, LANES, rows // SHORTS, SHORTS).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels), scales.reshape(-1, LANES)


def by_lanes(values: Float32) -> Float32:
    """Values of columns float32[N] as float32[P, 16], zeros beyond N."""
    padded = np.zeros(len(values) + -len(values) % LANES, np.float32)
    padded[: len(values)] = values
    return padded.reshape(-1, LANES)
