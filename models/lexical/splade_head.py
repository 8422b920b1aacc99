"""The head of a masked language model as lexical weights over the vocabulary, in torch."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

from tercet.models.errors import CheckpointError
from tercet.models.formats.splade import SpladeSettings


class _GivenStates(nn.Module):
    """Stands in the place of a model's body: its last hidden states are what comes in."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=inputs_embeds)


class SpladeHead(nn.Module):
    """Joins the logits of tokens as `tercet.models.formats.splade` says, all but a maximum's logarithms."""

    def __init__(self, model: nn.Module, settings: SpladeSettings) -> None:
        """model: the language model, whose body gives back what it is given."""
        super().__init__()
        self.model = model
        self.settings = settings

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """hidden: float[G, L, d]; mask: int[G, L], 1 on tokens. Returns float32[G, V], as a `Join` does."""
        states = hidden.to(next(self.model.parameters()).dtype)
        logits: Tensor = self.model(inputs_embeds=states).logits.float()
        weights = (logits * mask.unsqueeze(-1)).relu()
        if self.settings.pooling == "max":
            return weights.amax(1)
        weights = weights.log1p()
        return (weights.log1p() if self.settings.activation == "log1p_relu" else weights).sum(1)


def split_language_model(model: nn.Module, settings: SpladeSettings) -> tuple[nn.Module, SpladeHead]:
    """Body and head of a masked language model, which from now on is its head alone.

    Raises CheckpointError for a model whose body is not a part of it.
    """
    name = str(getattr(model, "base_model_prefix", ""))
    body = getattr(model, name, None)
    if not isinstance(body, nn.Module):
        raise CheckpointError(
            f"{type(model).__name__} has no body apart from its head; take another checkpoint"
        )
    setattr(model, name, _GivenStates())
    return body, SpladeHead(model, settings)
