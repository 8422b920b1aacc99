"""What one forward pass of a pre-training objective gives."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PretrainingOutputs:
    """embeddings: float[B, D], the pooled text, not normalized; losses: each float32[], to be added up."""

    embeddings: Tensor
    losses: dict[str, Tensor]

    @property
    def representations(self) -> tuple[Tensor]:
        """What gradients flow to when they are cached."""
        return (self.embeddings,)

    def detached(self) -> PretrainingOutputs:
        """These embeddings as a leaf that takes a gradient of its own, without losses."""
        return PretrainingOutputs(self.embeddings.detach().requires_grad_(), {})

    def total(self) -> Tensor:
        """All losses, added up."""
        return torch.stack(list(self.losses.values())).sum()
