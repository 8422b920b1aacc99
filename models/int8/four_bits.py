"""Tables whose values are 4-bit numbers times a scale for each block, kept as just that.

Some embeddings come so. As they are they take half the space of 8-bit rows, and lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Float32

BLOCK = 32
ZERO = 8
# Most tables are none of these, which so many rows show: each attempt on a whole one takes as much memory.
FIRST_ROWS = 64
# A block's largest number, by which its scale is found: -8 where the rounding is the usual one.
LARGEST = (-8, 8, 7, -7, 6, -6, 5, -5, 4, -4, 3, -3, 2, -2, 1, -1)


@dataclass(frozen=True, slots=True)
class FourBitTable:
    """numbers: uint8[R, C/2], two a byte, the first in its lower half, plus 8; scales: float16[R, C/32]."""

    numbers: npt.NDArray[np.uint8]
    scales: npt.NDArray[np.float16]

    def values(self) -> Float32:
        """The table float32[R, C]."""
        halves = np.stack([self.numbers & 0xF, self.numbers >> 4], axis=-1).reshape(len(self.numbers), -1)
        numbers = halves.astype(np.float32) - ZERO
        table: Float32 = numbers * np.repeat(self.scales.astype(np.float32), BLOCK, axis=1)
        return table


def four_bit_table(table: Float32) -> FourBitTable | None:
    """A table float32[R, C] in this form, or None where that would not give its very values."""
    rows, columns = table.shape
    if columns % BLOCK or (rows > FIRST_ROWS and four_bit_table(table[:FIRST_ROWS]) is None):
        return None
    blocks = table.reshape(-1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1, keepdims=True), axis=1)[:, 0]
    scales = np.zeros(len(blocks), np.float16)
    numbers = np.full(blocks.shape, ZERO, np.uint8)
    left = np.flatnonzero(largest)
    for number in LARGEST:
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            half_scales = (largest[left] / number).astype(np.float16)
            scale = half_scales.astype(np.float32)[:, None]
            integers = np.rint(blocks[left] / scale)
            exact = ((integers * scale == blocks[left]) & (integers >= -8) & (integers <= 7)).all(axis=1)
        scales[left[exact]] = half_scales[exact]
        numbers[left[exact]] = (integers[exact] + ZERO).astype(np.uint8)
        left = left[~exact]
        if not len(left):
            halves = numbers.reshape(rows, columns)
            packed = (halves[:, 0::2] | (halves[:, 1::2] << 4)).astype(np.uint8)
            return FourBitTable(packed, scales.reshape(rows, -1))
    return None
