"""What one forward pass of a pre-training objective gives."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class PretrainingOutputs:
    """embeddings: float[B, D], the pooled text, not normalized; losses: each float32[], to be added up."""

    embeddings: Tensor
    losses: dict[str, Tensor]
