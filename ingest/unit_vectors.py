"""Vectors that come ready made must be of unit length: scores of others would not be comparable."""

from __future__ import annotations

import numpy as np

from index.token_vectors.codecs import UNIT_ERROR
from models.representations import Float32, Int64


def rows_not_of_unit_length(vectors: Float32) -> tuple[Int64, Float32]:
    """The rows of float32[N, D] whose length is not 1, int64[K], and their lengths float32[K]."""
    with np.errstate(over="ignore"):
        lengths: Float32 = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= UNIT_ERROR))  # a NaN is wrong, too
    return wrong, lengths[wrong]
