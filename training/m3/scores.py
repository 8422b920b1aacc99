"""Scores of every query with every passage of a batch, with gradients.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, section 3.2).
Letters in shapes: B queries, N passages, L tokens, D dense and C ColBERT dimension.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

from training.m3.encoded_texts import SIDES, EncodedTexts
from training.m3.max_sim import MaxSim


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
    query_ids: Tensor,
    passage_lexical: Tensor,
    passage_ids: Tensor,
) -> Tensor:
    """s_lex = Σ over shared token ids of the product of both texts' largest lexical weights; float32[B, N].

    Lexical weights float32[B, L] and [N, L], at least 0, exactly 0 for padding and special tokens; ids int64.
    Only the ids of the batch itself get a column, so the vocabulary's size does not matter.
    """
    columns, column_of = torch.unique(
        torch.cat([query_ids.flatten(), passage_ids.flatten()]), return_inverse=True
    )
    query_columns, passage_columns = column_of.split([query_ids.numel(), passage_ids.numel()])
    queries = largest_by_column(query_lexical, query_columns.view_as(query_ids), len(columns))
    passages = largest_by_column(passage_lexical, passage_columns.view_as(passage_ids), len(columns))
    return queries @ passages.T


def largest_by_column(lexical: Tensor, columns: Tensor, width: int) -> Tensor:
    """Largest lexical weight of each column in each row, 0 where a row lacks it; float32[B, width]."""
    return lexical.new_zeros(len(lexical), width).scatter_reduce(1, columns, lexical, "amax")


def colbert_scores(
    query_vectors: Tensor, query_mask: Tensor, passage_vectors: Tensor, passage_mask: Tensor
) -> Tensor:
    """s_mul = (1/n) Σ_i max_j ⟨E_q[i], E_p[j]⟩ over the n unmasked query tokens; float32[B, N].

    Vectors float32[B, L, C] and [N, L, C], masks bool[B, L] and [N, L]; every text has an unmasked token.
    """
    tokens = query_vectors[query_mask]  # (T, C), T tokens of all queries
    lengths: list[int] = passage_mask.sum(dim=1).tolist()
    similarities: Tensor = MaxSim.apply(  # type: ignore[no-untyped-call]  # torch leaves it untyped
        tokens, passage_vectors[passage_mask], lengths
    )
    query_of_token = query_mask.nonzero()[:, 0]  # (T,)
    sums = similarities.new_zeros(len(query_vectors), len(lengths)).index_add(0, query_of_token, similarities)
    return sums / query_mask.sum(dim=1, keepdim=True)
