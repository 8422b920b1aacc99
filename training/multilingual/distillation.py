"""Teaches new word embeddings to give a text the vector of its English translation.

Only the rows of new pieces learn; the body and the rows of the English vocabulary stay as they are, so that
English text keeps its vectors to the last bit (Artetxe et al. 2020, arXiv 1910.11856; Reimers and Gurevych
2020, arXiv 2004.09813).

Letters in shapes: B texts, L tokens, D width, M vectors to tell apart.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class ExtendedTable(nn.Module):
    """Word embeddings of which the first rows are fixed and the others learn, with sparse gradients."""

    base: Tensor

    def __init__(self, table: Tensor, fixed: int) -> None:
        """table: float32[V, D]; fixed: how many rows at the beginning do not learn."""
        super().__init__()
        self.fixed = fixed
        self.register_buffer("base", table[:fixed].clone(), persistent=False)
        rows, width = table[fixed:].shape
        self.new = nn.Embedding(rows, width, sparse=True, _weight=table[fixed:].clone())

    def forward(self, ids: Tensor) -> Tensor:
        """Embeddings float32[B, L, D] of ids int64[B, L]."""
        known = ids < self.fixed
        old = functional.embedding(ids.clamp(max=self.fixed - 1), self.base)
        return torch.where(known[..., None], old, self.new((ids - self.fixed).clamp(min=0)))

    def whole(self) -> Tensor:
        """All rows, float32[V, D]."""
        return torch.cat([self.base, self.new.weight.detach()])


def pooled(body: Any, embedded: Tensor, mask: Tensor) -> Tensor:
    """Unit-length means float32[B, D] of the states of embedded texts float32[B, L, D]; mask int64[B, L]."""
    states = body(inputs_embeds=embedded, attention_mask=mask).last_hidden_state.float()
    weights = mask[..., None].float()
    return functional.normalize((states * weights).sum(1), dim=-1)


def translation_loss(student: Tensor, teacher: Tensor, others: Tensor, temperature: float) -> Tensor:
    """1 − cosine with the translation's vector, and the cross entropy of picking it out of all; float32.

    student, teacher: unit vectors float32[B, D], row by row; others: vectors of other English texts,
    float32[M, D].
    """
    near = 1 - (student * teacher).sum(1)
    scores = student @ torch.cat([teacher, others]).T / temperature
    # A text that occurs twice in the batch is no wrong answer.
    own = torch.arange(len(student))
    same = teacher @ torch.cat([teacher, others]).T > 0.999
    same[own, own] = False
    chosen = functional.cross_entropy(scores.masked_fill(same, float("-inf")), own)
    return 4 * near.mean() + chosen
