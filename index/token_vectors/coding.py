"""Token vectors as codes of a codebook, and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.blas import one_blas_thread
from index.codebook import Codebook, UInt8
from index.native.kernels import decode_pieces, encode_pieces, nearest_centroids
from index.token_vectors.integer_query import as_bytes
from models.representations import Float32

UInt16 = npt.NDArray[np.uint16]

VECTORS_AT_ONCE = 1_024  # what is made of them stays in the caches


@one_blas_thread
def encode(codebook: Codebook, vectors: Float32) -> tuple[UInt8, UInt16]:
    """Codes uint8[T, P] and numbers of centroids uint16[T] of vectors float32[T, C].

    Which centroid is nearest is found with the vectors as bytes; of two nearly as near it may be either.
    """
    centroids, tables = codebook.halves
    codes = np.empty((len(vectors), codebook.code_bytes), np.uint8)
    nearest = np.empty(len(vectors), np.uint16)
    for first in range(0, len(vectors), VECTORS_AT_ONCE):
        part = slice(first, first + VECTORS_AT_ONCE)
        turned = (vectors[part] @ codebook.rotation.T) / np.float32(codebook.step)
        nearest_centroids(*as_bytes(turned), codebook.centroid_tiles, codebook.half_lengths, nearest[part])
        encode_pieces(turned - centroids[nearest[part]], tables, codes[part])
    return codes, nearest


def decode(codebook: Codebook, codes: UInt8, nearest: UInt16) -> Float32:
    """The vectors float32[T, C] that codes uint8[T, P] and numbers of centroids uint16[T] stand for."""
    values = np.empty((len(codes), len(codebook.rotation)), np.float32)
    decode_pieces(codes, nearest, codebook.centroids, codebook.tables, values)
    lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    vectors: Float32 = values / np.maximum(lengths, np.float32(1)) @ codebook.rotation
    return vectors
