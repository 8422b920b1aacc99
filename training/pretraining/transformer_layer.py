"""One transformer layer of the body's width, for the small networks that only pre-training needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from transformers.activations import ACT2FN

from tercet.training.pretraining.sampled_attention import SampledAttention


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each followed by residual and LayerNorm, as in BERT (Devlin et al. 2019).

    Unlike the body's own layers it can read a context that is not its queries.
    """

    def __init__(self, config: Any) -> None:
        """config: the body's transformers configuration; weights are drawn as BERT draws them."""
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.heads = config.num_attention_heads
        self.attention_dropout = config.attention_probs_dropout_prob
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.attention_output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.expand = nn.Linear(width, inner)
        self.activation = ACT2FN[config.hidden_act]
        self.contract = nn.Linear(inner, width)
        self.output_norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=config.initializer_range)
                nn.init.zeros_(module.bias)

    def forward(self, queries: Tensor, context: Tensor, visible: Tensor | SampledAttention) -> Tensor:
        """New states float[B, L, D] of the queries float[B, L, D].

        context: float[B, M, D], keys and values; visible: bool[B, L, M] or bool[B, 1, M], which of them each
        query attends to, at least one, or a sample of them.
        """
        query, key, value = (
            self._split(self.query(queries)),
            self._split(self.key(context)),
            self._split(self.value(context)),
        )
        if isinstance(visible, SampledAttention):
            attended = self._attend_by_blocks(query, key, value, visible)
        else:
            attended = self._attend(query, key, value, visible)
        joined = self.attention_output(attended.transpose(1, 2).flatten(2))
        states = self.attention_norm(queries + self.dropout(joined))
        inner = self.contract(self.activation(self.expand(states)))
        result: Tensor = self.output_norm(states + self.dropout(inner))
        return result

    def _attend_by_blocks(
        self, queries: Tensor, keys: Tensor, values: Tensor, sample: SampledAttention
    ) -> Tensor:
        """`_attend` for some queries at a time, each block drawn anew in the backward pass: then no more than
        one is held.
        """
        blocks = sample.blocks()
        if len(blocks) == 1:
            return self._attend(queries, keys, values, sample.visible(blocks[0]))

        def attend(part: Tensor, keys: Tensor, values: Tensor, block: slice) -> Tensor:
            return self._attend(part, keys, values, sample.visible(block))

        return torch.cat(
            [
                checkpoint(
                    attend,
                    queries[:, :, block],
                    keys,
                    values,
                    block,
                    use_reentrant=False,
                    preserve_rng_state=self._dropped > 0,
                )
                for block in blocks
            ],
            dim=2,
        )

    def _attend(self, queries: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
        """Attention of float[B, heads, N, D / heads] over float[B, heads, M, D / heads]."""
        return functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=visible.unsqueeze(1), dropout_p=self._dropped
        )

    @property
    def _dropped(self) -> float:
        """Share of attention weights that are dropped."""
        return self.attention_dropout if self.training else 0.0

    def _split(self, states: Tensor) -> Tensor:
        """float[B, L, D] to float[B, heads, L, D / heads]."""
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)
