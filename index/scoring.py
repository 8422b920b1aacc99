"""Exact scores of one query and many documents: pure functions of arrays.

`s_dense = <q, p>`, `s_lex = sum over shared terms of w_q(t) w_p(t)`, and
`s_mul = (1/N) sum_i max_j <E_q[i], E_p[j]>` (M3-Embedding, Chen et al. 2024, section 3.2), N query tokens.
Dense and lexical scores are accumulated in float64, so that equal documents get equal scores wherever
they lie. Scores are rounded to DECIMALS before they are summed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tercet.index.blas import one_blas_thread
from tercet.index.native.kernels import exact_maxsim, near_maxsim, score_rows
from tercet.index.runs import runs
from tercet.index.token_vectors.query import QueryTokens
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import (
    Float32,
    Float64,
    Int32,
    Int64,
    SparseRows,
    offsets_of,
    ragged_positions,
)

DECIMALS = 6
ROUNDING = 10**-DECIMALS  # by as much a near score and an exact one can differ once both are rounded
CHUNK_TOKENS = 2048
# What a sum of products in float32 may be off, for each of them, relative to both vectors' lengths: the unit
# roundoff, doubled for what bounds of higher order leave out (Higham 2002, section 3.1).
PRODUCT_ERROR = 2.0**-23


def lexical_scores(token_ids: Int32, weights: Float32, forward: SparseRows, rows: Int64) -> Float64:
    """Sums of weight products over shared token ids, float64[K], of rows that are in no inverted index.

    token_ids: int32[T], ascending; weights: float32[T]; forward: the documents' rows.
    """
    if len(token_ids) == 0 or len(rows) == 0:
        return np.zeros(len(rows))
    stored = forward.indptr, forward.token_ids, forward.weights
    return np.round(score_rows(*stored, rows, token_ids, weights), DECIMALS)


def packed_maxsim(query: QueryTokens, texts: StoredTexts) -> Float64:
    """Late interaction of a query with stored texts: float64[K], exact and rounded.

    Multiplies in float64, so that equal texts have equal scores wherever they lie.
    """
    if len(query) == 0 or len(texts) == 0:
        return np.zeros(len(texts))
    if query.integers is None:
        return np.round(_matrix_maxsim(query.vectors.astype(np.float64), texts)[0], DECIMALS)
    return np.round(exact_maxsim(*texts.arguments, *query.integers.arguments), DECIMALS)


def near_packed_maxsim(query: QueryTokens, texts: StoredTexts) -> tuple[Float64, Float64]:
    """Late interaction of a query with stored texts, float64[K], a few times as fast as exactly.

    Returns how far each score may be from `packed_maxsim`, float64[K], too.
    """
    if len(query) == 0 or len(texts) == 0:
        return np.zeros(len(texts)), np.zeros(len(texts))
    if query.integers is None:
        scores, longest = _matrix_maxsim(query.vectors, texts)
        length = float(np.linalg.norm(query.vectors.astype(np.float64), axis=1).mean())
        return scores, PRODUCT_ERROR * query.vectors.shape[1] * length * longest + ROUNDING
    scores, errors = near_maxsim(*texts.arguments, *query.integers.arguments)
    return scores, errors + ROUNDING


@one_blas_thread
def _matrix_maxsim(query: npt.NDArray[np.floating], texts: StoredTexts) -> tuple[Float64, Float64]:
    """In chunks of whole texts that stay in cache, one matrix product each, of the query's type; and the
    length of each text's longest vector: float64[K] both.

    Float32 products can differ in the last bits with a token's place in its chunk.
    """
    scores, longest = np.zeros(len(texts)), np.zeros(len(texts))
    for ordinal, run in runs(texts.ordinals):
        some = _matrix_maxsim_of_store(query, texts.stores[ordinal], texts.rows[run])
        scores[run], longest[run] = some
    return scores, longest


def _matrix_maxsim_of_store(
    query: npt.NDArray[np.floating], store: TokenVectorStore, rows: Int64
) -> tuple[Float64, Float64]:
    scores, longest = np.zeros(len(rows)), np.zeros(len(rows))
    filled = np.flatnonzero(store.offsets[rows + 1] > store.offsets[rows])
    kept = rows[filled]
    offsets = offsets_of(store.offsets[kept + 1] - store.offsets[kept])
    first = 0
    while first < len(kept):
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK_TOKENS, "right")) - 1
        last = max(last, first + 1)
        vectors = store.vectors(ragged_positions(store.offsets, kept[first:last]))
        vectors = vectors.astype(query.dtype, copy=False)
        texts = offsets[first:last] - offsets[first]
        similarity = np.matmul(query, vectors.T)  # (N, C) x (C, T)
        best = np.maximum.reduceat(similarity, texts, axis=1)
        scores[filled[first:last]] = best.mean(axis=0, dtype=np.float64)
        squares = np.einsum("tc,tc->t", vectors, vectors)
        longest[filled[first:last]] = np.sqrt(np.maximum.reduceat(squares, texts).astype(np.float64))
        first = last
    return scores, longest
