"""Vectors in the smaller number types in which they may be asked for.

int8: each vector times 127 over its largest value, rounded, and a scale that turns it back; ubinary: the
signs of its values, 1 where above 0, eight in a byte, the first in the highest bit; binary: these bytes less
128.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tercet.index.token_vectors.store import quantize_int8
from tercet.models.representations import Float32

Dtype = Literal["float32", "float16", "int8", "binary", "ubinary"]
BITS: tuple[Dtype, ...] = ("binary", "ubinary")


@dataclass(frozen=True, slots=True)
class TypedVectors:
    """values: of one of the types, [N, D], or [N, D / 8] of bits; scales: float32[N], of int8 alone."""

    values: npt.NDArray[Any]
    scales: Float32 | None = None


def typed(vectors: Float32, dtype: Dtype) -> TypedVectors:
    """Vectors float32[N, D] as numbers of a type; D is a multiple of 8 for bits."""
    if dtype == "float32":
        return TypedVectors(vectors)
    if dtype == "float16":
        return TypedVectors(vectors.astype(np.float16))
    if dtype == "int8":
        return TypedVectors(*quantize_int8(vectors))
    bits = np.packbits(vectors > 0, axis=1)
    return TypedVectors(bits if dtype == "ubinary" else (bits ^ np.uint8(128)).view(np.int8))
