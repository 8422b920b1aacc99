"""The codebook of the codec `sign`: one bit a value, and nothing to learn.

Vectors are turned by a rotation drawn at random, which spreads over all values what some of them would hold
alone; a byte then holds the signs of eight values (random hyperplanes: Charikar 2002, section 3).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from index.token_vectors.codebook import ENTRIES, HALF_OFFSET, LARGEST_HALF, Codebook

BITS = 8  # of a code's byte


@cache
def sign_codebook(dimension: int) -> Codebook:
    """One centroid, which is 0, and the same table for all pieces. Raises ValueError for a dimension that is
    no multiple of 8.
    """
    if dimension <= 0 or dimension % BITS:
        raise ValueError(f"vectors of {dimension} values cannot be cut into pieces of {BITS}; use int8")
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((dimension, dimension)))
    positive = np.unpackbits(np.arange(ENTRIES, dtype=np.uint8)[:, None], axis=1).astype(np.bool_)
    table = np.where(positive, HALF_OFFSET + LARGEST_HALF, HALF_OFFSET - LARGEST_HALF).astype(np.uint8)
    return Codebook(
        np.ascontiguousarray(rotation, np.float32),
        np.full((1, dimension), HALF_OFFSET, np.uint8),
        np.repeat(table[None], dimension // BITS, axis=0),
        1 / (LARGEST_HALF * dimension**0.5),
    )
