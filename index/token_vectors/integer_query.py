"""Vectors as bytes, with a bound on what that loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.codebook import OFFSET, VALUES_AT_ONCE
from tercet.models.representations import Float32, Float64

# As `index/native/byte_products.h` has them.
LANES = 16  # query tokens that are multiplied together
STEP = 4  # values that a lane takes at a time

LARGEST = 127


@dataclass(frozen=True, slots=True)
class IntegerQuery:
    """N token vectors q, each about scale x values, in G groups of `LANES`; S values each, a multiple of 64,
    with zeros behind.

    packed: int8[G, S/4, 16, 4], as `byte_products.h` takes them; sums: int32[G, 16], 128 times the sum of
    each token's values; scales: float32[G, 16], 0 where a lane has no token; errors: float64[N],
    |q - scale x values|; vectors: float64[N, S], q itself.
    """

    packed: npt.NDArray[np.int8]
    sums: npt.NDArray[np.int32]
    scales: Float32
    errors: Float64
    vectors: Float64

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What kernels take of it."""
        return self.packed, self.sums, self.scales, self.errors, self.vectors

    @staticmethod
    def of(query: npt.NDArray[np.floating]) -> IntegerQuery:
        """Of floats [N, C]."""
        tokens, dimension = query.shape
        size = -(-dimension // VALUES_AT_ONCE) * VALUES_AT_ONCE
        groups = -(-tokens // LANES)
        vectors = np.zeros((groups * LANES, size))
        vectors[:tokens, :dimension] = query
        scales = (np.abs(vectors).max(axis=1) / LARGEST).astype(np.float32)
        divisors = np.where(scales > 0, scales, np.float32(1)).astype(np.float64)
        values = np.clip(np.rint(vectors / divisors[:, None]), -LARGEST, LARGEST)
        errors = np.sqrt(np.square(vectors - values * scales[:, None].astype(np.float64)).sum(axis=1))
        packed, sums = pack_lanes(values.astype(np.int8))
        return IntegerQuery(
            packed,
            sums,
            scales.reshape(groups, LANES),
            errors[:tokens],
            vectors[:tokens],
        )


def pack_lanes(values: npt.NDArray[np.int8]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Vectors int8[16 G, S], S a multiple of 64, as kernels multiply them, int8[G, S/4, 16, 4], and 128 times
    the sum of each one's values, int32[G, 16].
    """
    groups, steps = len(values) // LANES, values.shape[1] // STEP
    packed = values.view(np.int32).reshape(groups, LANES, steps).transpose(0, 2, 1)  # STEP values at a time
    sums = values.sum(axis=1, dtype=np.int32) * OFFSET
    lanes = np.ascontiguousarray(packed).view(np.int8).reshape(groups, steps, LANES, STEP)
    return lanes, sums.reshape(groups, LANES)


def as_bytes(vectors: Float32) -> tuple[npt.NDArray[np.int8], Float32]:
    """Vectors float32[N, C] as about scales float32[N] x values int8[N, S], S a multiple of 64, zeros behind;
    in fewer steps than `IntegerQuery`, where nobody asks for bounds.
    """
    count, dimension = vectors.shape
    scales: Float32 = np.maximum(vectors.max(axis=1), -vectors.min(axis=1)) / np.float32(LARGEST)
    values = np.zeros((count, -(-dimension // VALUES_AT_ONCE) * VALUES_AT_ONCE), np.int8)
    scaled = vectors / np.where(scales > 0, scales, np.float32(1))[:, None]
    np.rint(scaled, out=scaled)
    values[:, :dimension] = scaled  # at most LARGEST but for a rounding
    return values, scales
