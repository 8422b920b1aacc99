"""More learned positions than a body was trained with, so that it reads longer texts.

Letters in shapes: P rows of the table of positions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.checkpoint import position_limit, position_offset
from tercet.training.errors import ConfigError

WIDENED_TYPES = frozenset({"bert", "roberta", "xlm-roberta", "camembert"})
# Share of the coarse place in a position; one half would make the places (i, j) and (j, i) the same.
COARSE = 0.4


def require_widening(config: Mapping[str, Any], positions: int) -> None:
    """Raises ConfigError where a body of this configuration cannot be widened to so many positions."""
    family, limit = config.get("model_type"), position_limit(config)
    if family not in WIDENED_TYPES or limit is None:
        raise ConfigError(
            f"encoder.positions: it is {positions}, but only learned positions of BERT and XLM-RoBERTa are "
            f"widened, and the base is of type {family}; leave it out"
        )
    if not limit < positions <= limit * limit:
        raise ConfigError(
            f"encoder.positions: it is {positions}, but must be from {limit + 1} to {limit * limit}, since "
            f"the base has positions for {limit} tokens"
        )


def widen_positions(body: Any, positions: int) -> None:
    """Gives a body of the BERT or XLM-RoBERTa family positions for so many tokens. Those it has stay as they
    are.
    """
    config, embeddings = body.config, body.embeddings
    offset, table = position_offset(config.to_dict()), embeddings.position_embeddings
    weight = table.weight.detach()
    wider = torch.cat([weight[:offset], wider_table(weight[offset:], positions)])
    embeddings.position_embeddings = nn.Embedding(
        len(wider), wider.shape[1], padding_idx=table.padding_idx, _weight=wider
    )
    config.max_position_embeddings = len(wider)
    # Of the rows of the table, made by transformers with the body and not saved.
    embeddings.position_ids = torch.arange(len(wider), device=wider.device).unsqueeze(0)
    embeddings.token_type_ids = torch.zeros_like(embeddings.position_ids)


def wider_table(table: Tensor, positions: int) -> Tensor:
    """float[positions, D] that begins with the table float[P, D], for up to P² positions.

    Position i·P + j is α·u_i + (1 − α)·u_j with u_i = (p_i − α·p_0) / (1 − α), both counted from 0: the
    hierarchical decomposition of Su 2020 (spaces.ac.cn/archives/7947), whose α is 0.4. For i = 0 it is p_j.
    Authors of M3 name it as what BGE-M3's new positions start from (FlagEmbedding issue 444).
    """
    precise = table.double()
    bases = (precise - COARSE * precise[0]) / (1 - COARSE)
    new = torch.arange(len(table), positions, device=table.device)
    coarse, fine = bases[new // len(table)], bases[new % len(table)]
    return torch.cat([table, (COARSE * coarse + (1 - COARSE) * fine).to(table.dtype)])
