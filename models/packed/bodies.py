"""Which bodies take a packed pass, and where their positions begin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Names of transformers' configurations. Their attention is taken by name, so
# `tercet.models.packed.attention` can be
# it, and positions can be given. Those after the padding token's id count from it, as in fairseq.
AFTER_PADDING = frozenset({"camembert", "roberta", "xlm-roberta", "xlm-roberta-xl"})
FROM_ZERO = frozenset(
    {
        "bert",
        "distilbert",
        "electra",
        "eurobert",
        "gemma3_text",
        "gte",
        "jina_embeddings_v3",
        "mistral",
        "modernbert",
        "nomic_bert",
        "qwen2",
        "qwen3",
    }
)
# What the kernel on a GPU takes: 16-bit values on Ampere and newer, and heads of such widths.
LEAST_CAPABILITY = (8, 0)
HEAD_MULTIPLE = 8
WIDEST_HEAD = 256


@dataclass(frozen=True, slots=True)
class Positions:
    """How a body counts its tokens. padding_id: the id after which it begins, and which it does not count;
    None where it counts all, from 0.
    """

    padding_id: int | None

    def of(self, token_ids: Tensor, starts: Tensor) -> Tensor:
        """Position of each token, int64[T]. starts: int64[T], where the token's text begins."""
        if self.padding_id is None:
            return torch.arange(len(token_ids), device=token_ids.device) - starts
        counted = (token_ids != self.padding_id).long()
        before = torch.cumsum(counted, 0) - counted
        return (before - before[starts] + 1) * counted + self.padding_id


def positions_of(body: nn.Module) -> Positions | None:
    """How a body counts; None where it cannot be packed."""
    config: Any = body.config
    if config.model_type in AFTER_PADDING:
        return Positions(int(config.pad_token_id))
    return Positions(None) if config.model_type in FROM_ZERO else None


def has_kernel(body: nn.Module, dtype: torch.dtype, capability: tuple[int, int]) -> bool:
    """Whether a GPU of this compute capability has packed attention for a body of this precision."""
    config: Any = body.config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return (
        capability >= LEAST_CAPABILITY
        and dtype in (torch.float16, torch.bfloat16)
        and width % HEAD_MULTIPLE == 0
        and width <= WIDEST_HEAD
    )
