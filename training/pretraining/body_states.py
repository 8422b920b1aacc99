"""What pre-training reads from a transformers body of the BERT and XLM-RoBERTa families.

Letters in shapes: B texts, L tokens, D width, V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.checkpoint import OFFSET_POSITION_TYPES
from tercet.models.errors import UnsupportedError
from tercet.training.passes import LAST, states, states_of_layers
from tercet.training.pretraining.masking import MaskedText


def require_supported(body: nn.Module) -> None:
    """Raises UnsupportedError for a body without a table of position embeddings."""
    embeddings = getattr(body, "embeddings", None)
    if getattr(embeddings, "position_embeddings", None) is None:
        raise UnsupportedError(
            f"{type(body).__name__} has no table of position embeddings, which pre-training reads; "
            "choose a checkpoint of the BERT or XLM-RoBERTa family"
        )


def last_states(body: nn.Module, text: MaskedText) -> Tensor:
    """Last hidden states float[B, L, D] of a text as it is masked."""
    return states(body, text.ids, text.mask, text.lengths)


def early_and_late_states(body: nn.Module, text: MaskedText, early_layers: int) -> tuple[Tensor, Tensor]:
    """Hidden states float[B, L, D] after the first `early_layers` layers, and after the last one."""
    early, late = states_of_layers(body, text.ids, text.mask, text.lengths, [early_layers, LAST])
    return early, late


def token_embeddings(body: Any, ids: Tensor) -> Tensor:
    """What the body's first layer reads for ids int64[B, L]: words with positions; float[B, L, D]."""
    embedded: Tensor = body.embeddings(input_ids=ids)
    return embedded


def position_embeddings(body: Any, length: int) -> Tensor:
    """The body's position embeddings of the first `length` tokens of a text, float[L, D]."""
    config = body.config
    # RoBERTa counts positions from the padding id on.
    start = config.pad_token_id + 1 if config.model_type in OFFSET_POSITION_TYPES else 0
    table = body.embeddings.position_embeddings
    positions: Tensor = table(torch.arange(start, start + length, device=table.weight.device))
    return positions


def word_embeddings(body: Any) -> Tensor:
    """The body's word embeddings, float[V, D]; the parameter itself."""
    weight: Tensor = body.get_input_embeddings().weight
    return weight
