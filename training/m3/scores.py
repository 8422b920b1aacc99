"""Scores of every query with every passage of a batch, with gradients.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, section 3.2).
Letters in shapes: B queries, N passages, L tokens, D dense and C ColBERT dimension.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from torch import Tensor

from tercet.models.representations import Bool, Int64
from tercet.training.m3.encoded_texts import SIDES, EncodedTexts
from tercet.training.m3.max_sim import MaxSim
from tercet.training.transfer import on_device


def side_scores(
    queries: EncodedTexts, passages: EncodedTexts, sides: Collection[str] = SIDES
) -> dict[str, Tensor]:
    """Scores float32[B, N] of every query with every passage, by side."""
    scores = {}
    if "dense" in sides:
        scores["dense"] = dense_scores(queries.dense, passages.dense)
    if "sparse" in sides:
        scores["sparse"] = lexical_scores(
            queries.lexical, queries.token_ids, passages.lexical, passages.token_ids
        )
    if "colbert" in sides:
        scores["colbert"] = colbert_scores(
            queries.vectors, queries.vector_mask, passages.vectors, passages.vector_mask
        )
    return scores


def dense_scores(queries: Tensor, passages: Tensor) -> Tensor:
    """s_dense = ⟨q, p⟩ of unit vectors float32[B, D] and float32[N, D]; float32[B, N]."""
    return queries @ passages.T


def lexical_scores(
    query_lexical: Tensor,
    query_ids: Int64,
    passage_lexical: Tensor,
    passage_ids: Int64,
) -> Tensor:
    """s_lex = Σ over shared token ids of the product of both texts' largest lexical weights; float32[B, N].

    Lexical weights float32[B, L] and [N, L], at least 0, exactly 0 for padding and special tokens; ids int64
    on the host. Only the ids of the batch itself get a column, so the vocabulary's size does not matter.
    """
    ids, column_of = np.unique(np.concatenate([query_ids.ravel(), passage_ids.ravel()]), return_inverse=True)
    query_columns, passage_columns = np.split(column_of, [query_ids.size])
    queries = largest_by_column(query_lexical, query_columns.reshape(query_ids.shape), len(ids))
    passages = largest_by_column(passage_lexical, passage_columns.reshape(passage_ids.shape), len(ids))
    return queries @ passages.T


def largest_by_column(lexical: Tensor, columns: Int64, width: int) -> Tensor:
    """Largest lexical weight of each column in each row, 0 where a row lacks it; float32[B, width]."""
    indices = on_device(columns, lexical.device)
    return lexical.new_zeros(len(lexical), width).scatter_reduce(1, indices, lexical, "amax")


def colbert_scores(
    query_vectors: Tensor, query_mask: Bool, passage_vectors: Tensor, passage_mask: Bool
) -> Tensor:
    """s_mul = (1/n) Σ_i max_j ⟨E_q[i], E_p[j]⟩ over the n unmasked query tokens; float32[B, N].

    Vectors float32[B, L, C] and [N, L, C], masks bool[B, L] and [N, L] on the host; every text has an
    unmasked token.
    """
    similarities: Tensor = MaxSim.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
        packed(query_vectors, query_mask), packed(passage_vectors, passage_mask), passage_mask.sum(axis=1)
    )
    counts = query_mask.sum(axis=1)
    query_of_token, shares = (
        on_device(array, similarities.device)
        for array in (np.repeat(np.arange(len(counts)), counts), (1 / counts).astype(np.float32))
    )
    sums = similarities.new_zeros(len(counts), len(passage_mask)).index_add(0, query_of_token, similarities)
    return sums * shares[:, None]


def packed(vectors: Tensor, mask: Bool) -> Tensor:
    """The vectors of float32[B, L, C] that the mask bool[B, L] has, text after text; float32[T, C]."""
    return vectors.flatten(0, 1).index_select(0, on_device(np.flatnonzero(mask), vectors.device))
