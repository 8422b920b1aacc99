"""From stored hidden states to the three representations, with gradients to the heads."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import torch

from models.heads import Heads
from models.representations import Int64
from training.encoded_texts import EncodedTexts
from training.frozen.hidden_states import HiddenStates


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
        is_term=words,
        vectors=heads.token_vectors(states[:, 1:]),
        vector_mask=mask[:, 1:].bool(),
    )
