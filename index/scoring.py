"""Exact scores of one query and many documents: pure functions of arrays.

`s_dense = <q, p>`, `s_lex = sum over shared terms of w_q(t) w_p(t)`, and
`s_mul = (1/N) sum_i max_j <E_q[i], E_p[j]>` (M3-Embedding, Chen et al. 2024, section 3.2), N query tokens.
Dense and lexical scores are accumulated in float64, so that equal documents get equal scores wherever
they lie. Scores are rounded to DECIMALS before they are summed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from index.files.arrays import frozen
from index.files.float16 import rows_as_float32
from index.sparse.forward_rows import frozen_rows
from index.sparse.kernels import score_rows
from index.sparse.saturation import NO_SATURATION, Saturation
from index.token_vectors.store import TokenVectorStore
from models.representations import (
    Bool,
    Float32,
    Float64,
    Int32,
    Int64,
    SparseRows,
    offsets_of,
    ragged_positions,
)

DECIMALS = 6
CHUNK_TOKENS = 2048


def dense_scores(query: Float32, vectors: npt.NDArray[np.float16], rows: Int64) -> Float64:
    """Inner products of query float32[D] with the given rows of vectors float16[N, D]: float64[K]."""
    products: Float64 = rows_as_float32(vectors, rows).astype(np.float64) @ query.astype(np.float64)
    return np.round(products, DECIMALS)


def lexical_scores(
    token_ids: Int32,
    weights: Float32,
    forward: SparseRows,
    rows: Int64,
    saturation: Saturation = NO_SATURATION,
) -> Float64:
    """Sums of weight products over shared token ids, float64[K].

    token_ids: int32[T], ascending; weights: float32[T]; forward: the documents' rows; saturation: where they
    hold frequencies.
    """
    if len(token_ids) == 0 or len(rows) == 0:
        return np.zeros(len(rows))
    stored = frozen_rows(forward)
    arrays = (stored.indptr, stored.token_ids, stored.weights, saturation.arguments, frozen(rows))
    scores: Float64 = score_rows(*arrays, frozen(token_ids), frozen(weights))
    return np.round(scores, DECIMALS)


def maxsim(query: Float32, document: Float32, document_mask: Bool) -> Float32:
    """Late interaction of padded arrays: query float32[N, C], document float32[B, L, C], mask bool[B, L].

    Masked tokens count as -inf, never as 0. Returns float32[B]; 0 for a document or query without tokens.
    """
    if len(query) == 0 or document.shape[1] == 0:
        return np.zeros(len(document), np.float32)
    similarity = np.einsum("nc,blc->bnl", query, document)  # (B, N, L)
    best = np.where(document_mask[:, None, :], similarity, -np.inf).max(axis=2)  # (B, N)
    return np.where(document_mask.any(axis=1), best.mean(axis=1), 0.0).astype(np.float32)


def packed_maxsim(query: Float32, store: TokenVectorStore, rows: Int64, *, precise: bool = False) -> Float64:
    """Late interaction of query float32[N, C] with stored documents: float64[K], rounded.

    Works in chunks of whole documents that stay in cache, one matrix product each. Float32 products
    can differ in the last bits with a token's place in its chunk; `precise` multiplies in float64, after
    which equal documents have equal scores.
    """
    scores = np.zeros(len(rows))
    filled = np.flatnonzero(store.offsets[rows + 1] > store.offsets[rows])
    if len(query) == 0 or len(filled) == 0:
        return scores
    kind: type[np.floating] = np.float64 if precise else np.float32
    tokens: npt.NDArray[np.floating] = query.astype(kind)
    kept = rows[filled]
    offsets = offsets_of(store.offsets[kept + 1] - store.offsets[kept])
    first = 0
    while first < len(kept):
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK_TOKENS, "right")) - 1
        last = max(last, first + 1)
        vectors = store.vectors(ragged_positions(store.offsets, kept[first:last])).astype(kind, copy=False)
        similarity = np.matmul(tokens, vectors.T)  # (N, C) x (C, T)
        best = np.maximum.reduceat(similarity, offsets[first:last] - offsets[first], axis=1)
        scores[filled[first:last]] = best.mean(axis=0, dtype=np.float64)
        first = last
    return np.round(scores, DECIMALS)
