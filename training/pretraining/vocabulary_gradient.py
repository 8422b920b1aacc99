"""The gradient of the vocabulary's matrix over a step, in one product.

It has as many numbers as the matrix, so to add to it costs more than to compute what is added, where few
tokens come at a time. So what it is made of waits until all of a step is there.

Letters in shapes: n rows, one a predicted token; D width, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Numbers of the errors, n · V, that wait at most: 128 MiB of float32 on a CPU, 2 GiB of bfloat16 on a GPU.
WAITING = {"cpu": 1 << 25, "cuda": 1 << 30}


class RowProducts:
    """Σ errorᵀ · states over rows that come a few at a time. As many as may wait are multiplied together."""

    def __init__(self, waiting: int | None = None) -> None:
        """waiting: numbers of the errors that wait at most, by default as many as suit the device."""
        self._waiting = waiting
        self.errors: list[Tensor] = []
        self.states: list[Tensor] = []
        self.summed: Tensor | None = None

    def add(self, error: Tensor, states: Tensor) -> None:
        """Takes rows, error float[n, V] and states float[n, D], both of the type that products run in."""
        limit = WAITING[error.device.type] if self._waiting is None else self._waiting
        if self.errors and sum(waiting.numel() for waiting in self.errors) + error.numel() > limit:
            self._multiply()
        self.errors.append(error)
        self.states.append(states)

    def add_all(self, others: RowProducts, factor: Tensor) -> None:
        """Takes what the others have, times the factor float32[]; they keep it."""
        if others.summed is not None:
            scaled = others.summed * factor
            self.summed = scaled if self.summed is None else self.summed.add_(scaled)
        for error, states in zip(others.errors, others.states, strict=True):
            self.add(error, states * factor.to(states.dtype))

    def total(self) -> Tensor:
        """The sum float32[V, D] of all, float64 for such states; some were added before."""
        self._multiply()
        assert self.summed is not None  # noqa: S101 - some were added
        return self.summed

    def _multiply(self) -> None:
        if not self.errors:
            return
        # Joined where there is something to join: these are the largest tensors of a step.
        error, states = (
            waiting[0] if len(waiting) == 1 else torch.cat(waiting) for waiting in (self.errors, self.states)
        )
        self.errors, self.states = [], []
        precise = torch.promote_types(error.dtype, torch.float32)
        if self.summed is None:
            self.summed = (error.T @ states).to(precise)
        elif error.dtype == precise:
            self.summed.addmm_(error.T, states)
        else:
            self.summed += error.T @ states


class VocabularyGradient:
    """Gathers the rows of every loss of a step, and gives the gradient with the last of them."""

    def __init__(self, losses: int, waiting: int | None = None) -> None:
        """losses: how many of them; waiting: as `RowProducts` takes it."""
        self._missing = losses
        self._products = RowProducts(waiting)

    def add(self, products: RowProducts, factor: Tensor) -> Tensor | None:
        """Takes the rows of a loss, times the factor float32[]; the gradient, once none is missing."""
        self._products.add_all(products, factor)
        self._missing -= 1
        return None if self._missing else self._products.total()
