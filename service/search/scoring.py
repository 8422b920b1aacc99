"""Three-way scores of a query and texts that are in no index."""

from __future__ import annotations

import numpy as np

from tercet.index.blas import one_blas_thread
from tercet.index.scoring import DECIMALS, lexical_scores
from tercet.models.representations import Float32, Float64, Int64, Representations, TokenVectors

CHUNK_CELLS = 4_000_000  # query tokens times document tokens multiplied at once


@one_blas_thread
def score_texts(query: Representations, documents: Representations) -> Float64:
    """Scores of one query and B documents: float64[B, 3], dense, sparse, colbert; 0 on a side that they lack.

    The definitions are those of `index/scoring.py`, on unstored, unquantized vectors.
    """
    scores = np.zeros((len(documents), 3))
    if query.dense is not None and documents.dense is not None:
        scores[:, 0] = documents.dense.astype(np.float64) @ query.dense[0].astype(np.float64)
    if query.sparse is not None and documents.sparse is not None:
        token_ids, weights = query.sparse.row(0)
        scores[:, 1] = lexical_scores(token_ids, weights, documents.sparse, np.arange(len(documents)))
    if query.colbert is not None and documents.colbert is not None:
        scores[:, 2] = _maxsim(query.colbert.row(0), documents.colbert)
    return np.round(scores, DECIMALS)


def _maxsim(query: Float32, documents: TokenVectors) -> Float64:
    """Late interaction of query float32[N, C] with each document: float64[B]; 0 without token vectors."""
    scores = np.zeros(len(documents))
    rows = np.flatnonzero(np.diff(documents.offsets) > 0)
    if len(query) == 0 or len(rows) == 0:
        return scores
    ends = np.cumsum(documents.offsets[rows + 1] - documents.offsets[rows])
    chunk_of = (ends - 1) * len(query) // CHUNK_CELLS
    for chunk in np.split(rows, np.flatnonzero(np.diff(chunk_of)) + 1):
        scores[chunk] = _maxsim_of_rows(query, documents, chunk)
    return scores


def _maxsim_of_rows(query: Float32, documents: TokenVectors, rows: Int64) -> Float64:
    """Late interaction for rows that all have token vectors and follow one another."""
    taken = documents.take(rows)
    similarities = query @ taken.vectors.T  # (N, ΣL)
    best = np.maximum.reduceat(similarities, taken.offsets[:-1], axis=1)  # (N, B)
    return np.asarray(best.astype(np.float64).mean(axis=0))
