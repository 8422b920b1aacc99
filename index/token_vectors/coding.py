"""Token vectors as codes of a codebook, and back.

They are turned in float64, so that a vector has the same code, and a code stands for the same vector,
whatever else is turned with it: products of float32 have other last bits by how many there are at a time.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tercet.index.blas import one_blas_thread
from tercet.index.codebook import Codebook, UInt8
from tercet.index.native.kernels import decode_pieces, encode_pieces
from tercet.index.token_vectors.centroid_groups import CentroidGroups, UInt16
from tercet.models.representations import Float32

VECTORS_AT_ONCE = 1_024  # what is made of them stays in the caches


@lru_cache(maxsize=8)
def _groups_of(codebook: Codebook) -> CentroidGroups:
    return CentroidGroups.of(codebook.centroids)


@one_blas_thread
def encode(codebook: Codebook, vectors: Float32) -> tuple[UInt8, UInt16]:
    """Codes uint8[T, P] and numbers of centroids uint16[T] of vectors float32[T, C]."""
    centroids, tables = codebook.halves
    groups = _groups_of(codebook)
    rotation = codebook.rotation.T.astype(np.float64)
    codes = np.empty((len(vectors), codebook.code_bytes), np.uint8)
    nearest = np.empty(len(vectors), np.uint16)
    for first in range(0, len(vectors), VECTORS_AT_ONCE):
        part = slice(first, first + VECTORS_AT_ONCE)
        turned = (vectors[part] @ rotation / codebook.step).astype(np.float32)
        nearest[part] = groups.nearest(turned)
        encode_pieces(turned - centroids[nearest[part]], tables, codes[part])
    return codes, nearest


def decode(codebook: Codebook, codes: UInt8, nearest: UInt16) -> Float32:
    """The vectors float32[T, C] that codes uint8[T, P] and numbers of centroids uint16[T] stand for."""
    values = np.empty((len(codes), len(codebook.rotation)), np.float32)
    decode_pieces(codes, nearest, codebook.centroids, codebook.tables, values)
    lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    turned = values / np.maximum(lengths, np.float32(1))
    vectors: Float32 = (turned @ codebook.rotation.astype(np.float64)).astype(np.float32)
    return vectors
