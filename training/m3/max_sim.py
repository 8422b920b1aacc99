"""The best passage token of every query token, with gradients, in little memory.

Autograd through the written-out formula would keep a vector for each query token and passage; here only the
places of the best tokens are kept, and gradients are added up a passage at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


class MaxSim(torch.autograd.Function):
    """max_j ⟨t, p_j⟩ over the tokens j of each passage p.

    tokens: float32[T, C]; vectors: float32[M, C], those of N passages, packed; lengths: tokens of each
    passage, N numbers of at least 1. Returns float32[T, N].
    """

    @staticmethod
    def forward(context: Any, tokens: Tensor, vectors: Tensor, lengths: list[int]) -> Tensor:
        similarities = tokens.new_empty(len(tokens), len(lengths))
        best = torch.empty(similarities.shape, dtype=torch.int32, device=tokens.device)
        for passage, (start, part) in enumerate(_passages(vectors, lengths)):
            # One at a time, so that similarities stay in a CPU's cache.
            similarities[:, passage], places = (tokens @ part.T).max(dim=1)
            best[:, passage] = places + start
        context.save_for_backward(tokens, vectors, best)
        return similarities

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        tokens, vectors, best = context.saved_tensors
        of_tokens, of_vectors = torch.zeros_like(tokens), torch.zeros_like(vectors)
        for gradient, places in zip(gradients[0].T[:, :, None], best.T, strict=True):
            of_tokens.addcmul_(gradient, vectors.index_select(0, places))
            of_vectors.index_add_(0, places, gradient * tokens)
        return of_tokens, of_vectors, None


def _passages(vectors: Tensor, lengths: list[int]) -> Iterator[tuple[int, Tensor]]:
    """Where each passage begins, and its vectors."""
    start = 0
    for part in torch.split(vectors, lengths):
        yield start, part
        start += len(part)
