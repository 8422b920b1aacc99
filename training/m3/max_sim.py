"""The best passage token of every query token, with gradients, in little memory.

Autograd through the written-out formula would keep a vector for each query token and passage; here only the
places of the best tokens are kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from tercet.models.batching import plan_batches
from tercet.models.representations import Int64, offsets_of
from tercet.training.transfer import on_device

# Similarities that are computed together: on a CPU as many as stay in its cache.
AT_ONCE = {"cpu": 1 << 18, "cuda": 1 << 28}


class MaxSim(torch.autograd.Function):
    """max_j ⟨t, p_j⟩ over the tokens j of each passage p.

    tokens: float32[T, C]; vectors: float32[M, C], those of N passages, packed; lengths: int64[N] on the host,
    tokens of each passage, at least 1. Returns float32[T, N].
    """

    @staticmethod
    def forward(context: Any, tokens: Tensor, vectors: Tensor, lengths: Int64) -> Tensor:
        starts = offsets_of(lengths)[:-1]
        similarities = tokens.new_empty(len(lengths), len(tokens))
        best = torch.empty(similarities.shape, dtype=torch.int64, device=tokens.device)
        # Passages of like length together, as many as may be.
        for rows in plan_batches(lengths, AT_ONCE[tokens.device.type] // max(1, len(tokens))):
            columns, first, last = (
                on_device(array, tokens.device)
                for array in (rows, starts[rows], (starts + lengths - 1)[rows])
            )
            # The last token again where a passage has no more: that changes no maximum.
            padded = torch.minimum(
                first[:, None] + torch.arange(int(lengths[rows].max()), device=tokens.device), last[:, None]
            )  # (P, L)
            products = (tokens @ vectors.index_select(0, padded.flatten()).T).view(len(tokens), *padded.shape)
            largest, token = products.max(dim=2)
            similarities.index_copy_(0, columns, largest.T)
            best.index_copy_(0, columns, torch.minimum(first + token, last).T)
        context.save_for_backward(tokens, vectors, best)
        return similarities.T

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """A token gets the weighted sum of its best ones, a passage's token of those that it is best for."""
        tokens, vectors, best = context.saved_tensors
        gradient = gradients[0].T.contiguous()  # (N, T), as the places
        of_tokens = embedding_bag(best.T, vectors, per_sample_weights=gradient.T, mode="sum")
        ordered, order = best.flatten().sort(stable=True)
        bags = torch.searchsorted(ordered, torch.arange(len(vectors), device=tokens.device))
        of_vectors = embedding_bag(
            order % len(tokens), tokens, bags, per_sample_weights=gradient.flatten()[order], mode="sum"
        )
        return of_tokens, of_vectors, None
