"""Scores of every query with every passage of a batch, with gradients.

Formulas: BGE-M3 (Chen et al. 2024, arXiv 2402.03216, section 3.2).
Letters in shapes: B queries, N passages, L tokens, D dense and C ColBERT dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from training.encoded_texts import EncodedTexts


@dataclass(frozen=True, slots=True)
class ThreeScores:
    """Scores float32[B, N] of each side."""

    dense: Tensor
    sparse: Tensor
    colbert: Tensor

    @property
    def sum(self) -> Tensor:
        """The plain sum, weights 1, 1, 1: what a user gets by default."""
        return self.dense + self.sparse + self.colbert


def three_scores(queries: EncodedTexts, passages: EncodedTexts) -> ThreeScores:
    """All three scores of every query with every passage."""
    return ThreeScores(
        dense_scores(queries.dense, passages.dense),
        lexical_scores(queries.weights, queries.token_ids, passages.weights, passages.token_ids),
        colbert_scores(queries.vectors, queries.vector_mask, passages.vectors, passages.vector_mask),
    )


def dense_scores(queries: Tensor, passages: Tensor) -> Tensor:
    """s_dense = ⟨q, p⟩ of unit vectors float32[B, D] and float32[N, D]; float32[B, N]."""
    return queries @ passages.T


def lexical_scores(
    query_weights: Tensor,
    query_ids: Tensor,
    passage_weights: Tensor,
    passage_ids: Tensor,
) -> Tensor:
    """s_lex = Σ over shared token ids of the product of both texts' largest weights; float32[B, N].

    Weights float32[B, L] and [N, L], at least 0, exactly 0 for padding and special tokens; ids int64.
    Only the ids of the batch itself get a column, so the vocabulary's size does not matter.
    """
    columns, column_of = torch.unique(
        torch.cat([query_ids.flatten(), passage_ids.flatten()]), return_inverse=True
    )
    query_columns, passage_columns = column_of.split([query_ids.numel(), passage_ids.numel()])
    queries = largest_by_column(query_weights, query_columns.view_as(query_ids), len(columns))
    passages = largest_by_column(passage_weights, passage_columns.view_as(passage_ids), len(columns))
    return queries @ passages.T


def largest_by_column(weights: Tensor, columns: Tensor, width: int) -> Tensor:
    """Largest weight of each column in each row, 0 where a row lacks it; float32[B, width]."""
    return weights.new_zeros(len(weights), width).scatter_reduce(1, columns, weights, "amax")


def colbert_scores(
    query_vectors: Tensor, query_mask: Tensor, passage_vectors: Tensor, passage_mask: Tensor
) -> Tensor:
    """s_mul = (1/n) Σ_i max_j ⟨E_q[i], E_p[j]⟩ over the n unmasked query tokens; float32[B, N].

    Vectors float32[B, L, C] and [N, L, C], masks bool[B, L] and [N, L]; every text has an unmasked token.
    The best passage token is looked for without gradients, one passage at a time so that similarities stay
    in cache; the gradient then flows through the pairs of tokens found, as it would through the maximum.
    """
    tokens = query_vectors[query_mask]  # (T, C), T tokens of all queries
    query_of_token = query_mask.nonzero()[:, 0]  # (T,)
    passages, length, _ = passage_vectors.shape
    with torch.no_grad():
        found = [
            mask.nonzero()[:, 0][(tokens @ vectors[mask].T).argmax(dim=1)] + place * length
            for place, (vectors, mask) in enumerate(zip(passage_vectors, passage_mask, strict=True))
        ]
        best = torch.stack(found, dim=1)  # (T, N), places among all passages' tokens
    winners = passage_vectors.flatten(0, 1).index_select(0, best.flatten()).view(len(tokens), passages, -1)
    similarities = torch.einsum("tc,tnc->tn", tokens, winners)
    sums = similarities.new_zeros(len(query_vectors), passages).index_add(0, query_of_token, similarities)
    return sums / query_mask.sum(dim=1, keepdim=True)
