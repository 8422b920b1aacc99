"""Vectors that come ready made must be of unit length: scores of others would not be comparable."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from index.token_vectors.codecs import UNIT_ERROR
from models.representations import Float32, Int64, Representations


def wrong_lengths(texts: Representations) -> Iterator[tuple[str, Int64, Float32]]:
    """Of the dense and the token vectors whose length is not 1: the side, the texts int64[K] that they are
    of, and the lengths float32[K]. The dense vector of a text without weights and token vectors may be zeros.
    """
    nothing = np.ones(len(texts), np.bool_)
    if texts.sparse is not None:
        nothing &= np.diff(texts.sparse.indptr) == 0
    if texts.colbert is not None:
        counts = np.diff(texts.colbert.offsets)
        nothing &= counts == 0
    if texts.dense is not None:
        wrong, lengths = rows_not_of_unit_length(texts.dense)
        kept = ~(nothing[wrong] & (lengths == 0))
        yield "dense", wrong[kept], lengths[kept]
    if texts.colbert is not None:
        wrong, lengths = rows_not_of_unit_length(texts.colbert.vectors)
        yield "colbert", np.repeat(np.arange(len(texts)), counts)[wrong], lengths


def rows_not_of_unit_length(vectors: Float32) -> tuple[Int64, Float32]:
    """The rows of float32[N, D] whose length is not 1, int64[K], and their lengths float32[K]."""
    with np.errstate(over="ignore"):
        lengths: Float32 = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    wrong = np.flatnonzero(~(np.abs(lengths - 1) <= UNIT_ERROR))  # a NaN is wrong, too
    return wrong, lengths[wrong]
