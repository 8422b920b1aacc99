"""Modules that learn together with the router that chooses among them: a sparse mixture of adapters.

With x the unit dense vector of a text by the base, and one score for each of N modules (Pfeiffer et al. 2023,
arXiv 2302.11529, section 4; Shazeer et al. 2017, arXiv 1701.06538):

s = W·x + b        scores
C                  the k modules with the largest scores
w = softmax(s_C)   weights of what the chosen ones compute; the others compute nothing

With k = 1 the weight is 1, whatever the score. Its gradient is then that of the probability softmax(s), by
which Fedus et al. (2021, arXiv 2101.03961) multiply, and the base stands beside the module with weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from tercet.models.adapters.body import Part, ThreadAdapters
from tercet.models.adapters.changes import SMALL_STD
from tercet.models.adapters.mixing import MixedShare
from tercet.models.batching import rows_by_adapter
from tercet.training.settings.adapter import RoutingSettings


class RoutedModules(nn.Module):
    """The router of N modules in a body, and which of them act in a pass."""

    def __init__(
        self, parts: Sequence[Part], active: ThreadAdapters, dimension: int, settings: RoutingSettings
    ) -> None:
        """parts: the modules in the body, which follow `active`; dimension: of the base's dense vectors."""
        super().__init__()
        self.top = settings.top
        self.balance = settings.balance
        self.gate = nn.Linear(dimension, len(parts))
        nn.init.normal_(self.gate.weight, std=SMALL_STD)
        nn.init.zeros_(self.gate.bias)
        self._parts = tuple(parts)
        self._active = active

    def forward(self, dense: Tensor) -> Tensor:
        """Scores float32[B, N] of the modules for unit vectors float32[B, D] by the base."""
        scores: Tensor = self.gate(dense)
        return scores

    def acting(self, scores: Tensor) -> AbstractContextManager[None]:
        """Within the context each row of this thread's pass goes through the modules that its scores choose.

        scores: float32[B, N].
        """
        chosen = largest(scores, self.top)
        weights = module_weights(scores, chosen)
        groups = rows_by_adapter([tuple(row) for row in chosen.tolist()])
        shares = []
        for members, rows in groups.items():
            on_device = torch.from_numpy(rows).to(scores.device)
            parts: list[tuple[Part, ...]] = [(self._parts[member],) for member in members]
            if self.top == 1:
                parts.append(())  # the base
            where = None if len(groups) == 1 else on_device
            shares.append(MixedShare(where, tuple(parts), weights[on_device]))
        return self._active.use(shares)


def largest(scores: Tensor, top: int) -> Tensor:
    """The columns int64[B, k] of the largest scores of each row, ascending; of equal ones the first."""
    order = scores.sort(dim=1, descending=True, stable=True).indices
    return order[:, :top].sort(dim=1).values


def module_weights(scores: Tensor, chosen: Tensor) -> Tensor:
    """Weights float[B, k] of the chosen modules int64[B, k]; of a single one [B, 2], with the base's.

    scores: float[B, N].
    """
    if chosen.shape[1] > 1:
        return scores.gather(1, chosen).softmax(dim=1)
    probability = scores.softmax(dim=1).gather(1, chosen)
    beyond = probability - probability.detach()  # 0, with the probability's gradient
    return torch.cat([1 + beyond, -beyond], dim=1)


def balance_loss(scores: Tensor, top: int) -> Tensor:
    """N · Σ_i f_i · P_i over texts with scores float[B, N]: 1 where modules are used alike, N at the most.

    f_i is the share of the choices that fall on module i, P_i the mean of softmax(s)_i. f has no gradient.
    Source: Fedus et al. 2021, arXiv 2101.03961, equations 4 to 6, for k choices of each text.
    """
    count = scores.shape[1]
    choices = torch.bincount(largest(scores.detach(), top).flatten(), minlength=count)
    shares = choices.to(scores.dtype) / choices.sum()
    return count * (shares * scores.softmax(dim=1).mean(dim=0)).sum()
