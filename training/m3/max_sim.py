"""The best passage token of every query token, with gradients, in little memory.

Autograd through the written-out formula would keep a vector for each query token and passage; here only the
places of the best tokens are kept, and gradients are added up a few passages at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Similarities that are computed together. On a CPU those of one passage, so that they stay in its cache; a
# GPU would wait longer for each passage than it works on it.
AT_ONCE = {"cpu": 0, "cuda": 1 << 26}


class MaxSim(torch.autograd.Function):
    """max_j ⟨t, p_j⟩ over the tokens j of each passage p.

    tokens: float32[T, C]; vectors: float32[M, C], those of N passages, packed; lengths: tokens of each
    passage, N numbers of at least 1. Returns float32[T, N].
    """

    @staticmethod
    def forward(context: Any, tokens: Tensor, vectors: Tensor, lengths: list[int]) -> Tensor:
        similarities = tokens.new_empty(len(tokens), len(lengths))
        best = torch.empty(similarities.shape, dtype=torch.int32, device=tokens.device)
        parts: list[Tensor] = list(vectors.split(lengths))  # type: ignore[no-untyped-call]  # untyped library
        starts = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32, device=tokens.device)
        for block in _blocks(lengths, len(tokens), tokens.device.type):
            padded = pad_sequence(parts[block], batch_first=True)  # (P, L, C)
            found = torch.einsum("tc,plc->tpl", tokens, padded)
            if len(padded) > 1:
                found.masked_fill_(_padding(lengths[block], padded), float("-inf"))
            similarities[:, block], places = found.max(dim=2)
            best[:, block] = places + starts[block]
        context.save_for_backward(tokens, vectors, best)
        return similarities

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        tokens, vectors, best = context.saved_tensors
        of_tokens, of_vectors = torch.zeros_like(tokens), torch.zeros_like(vectors)
        at_once = max(1, AT_ONCE[tokens.device.type] // max(1, tokens.numel()))
        for start in range(0, best.shape[1], at_once):
            block = slice(start, start + at_once)
            gradient, places = gradients[0][:, block], best[:, block]
            flat = places.reshape(-1)
            chosen = vectors.index_select(0, flat).view(*places.shape, -1)  # (T, P, C)
            of_tokens += torch.einsum("tp,tpc->tc", gradient, chosen)
            of_vectors.index_add_(0, flat, (gradient[:, :, None] * tokens[:, None, :]).flatten(0, 1))
        return of_tokens, of_vectors, None


def _blocks(lengths: Sequence[int], tokens: int, device: str) -> Iterator[slice]:
    """Consecutive passages of which one each, or as many as may be computed together, padded alike."""
    first, longest = 0, 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > first and tokens * longest * (place + 1 - first) > AT_ONCE[device]:
            yield slice(first, place)
            first, longest = place, length
    yield slice(first, len(lengths))


def _padding(lengths: Sequence[int], padded: Tensor) -> Tensor:
    """bool[P, L]: where passages of these lengths are padded."""
    places = torch.arange(padded.shape[1], device=padded.device)
    return places >= torch.tensor(lengths, device=padded.device)[:, None]
