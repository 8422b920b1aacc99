"""The three representations of a batch of texts as padded tensors, with gradients to the heads."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor

from models.heads import Heads
from models.representations import Int64
from training.hidden_states import HiddenStates


@dataclass(frozen=True, slots=True)
class EncodedTexts:
    """B texts, padded on the right.

    dense: float32[B, D]; weights: float32[B, L], exactly 0 for padding and special tokens; token_ids:
    int64[B, L]; vectors: float32[B, L−1, C] and vector_mask: bool[B, L−1], without the first token.
    """

    dense: Tensor
    weights: Tensor
    token_ids: Tensor
    vectors: Tensor
    vector_mask: Tensor


def encode_texts(
    heads: Heads, special_ids: AbstractSet[int], hidden: HiddenStates, rows: Int64
) -> EncodedTexts:
    """The given texts through the heads, as design and `models.heads` define the three outputs."""
    states, token_ids, mask = hidden.padded(rows)
    words = mask.bool() & ~torch.isin(token_ids, torch.tensor(sorted(special_ids)))
    return EncodedTexts(
        dense=heads.dense(states, mask),
        weights=heads.token_weights(states) * words,
        token_ids=token_ids,
        vectors=heads.token_vectors(states[:, 1:]),
        vector_mask=mask[:, 1:].bool(),
    )
