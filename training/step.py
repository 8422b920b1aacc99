"""What a stage of training gives to the loop, and what the loop asks of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

Figures = dict[str, dict[str, float]]
"""Development figures, nDCG@10 by source, then by side."""
Scaled = Callable[[Tensor], Tensor]
"""Scales a loss up, so that gradients in float16 do not vanish; the loop scales gradients down again."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """Losses of one step by name, without graphs, and the tokens that it read on this device."""

    losses: dict[str, Tensor]
    tokens: int


def nothing() -> None:
    """What a step of one process has to do before its last backward pass."""


class Stage(Protocol):
    """Batches and what is learned from them."""

    steps_per_epoch: int

    def accumulate(self, step: int, scaled: Scaled, before_last: Callable[[], None] = nothing) -> StepReport:
        """Adds to every parameter the gradient of one step's batch, of the loss as `scaled` gives it.

        before_last: is called before the last backward pass, after which nothing is added.
        """
        ...

    def evaluate(self) -> Figures:
        """Development figures, which all processes find together; empty where nothing is held out."""
        ...
