"""Losses that stay on the device until several steps' are read together: to read them is to wait for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from tercet.training.distributed import Ranks, mean_over_all


@dataclass(frozen=True, slots=True)
class Reading:
    """A step's losses by name, means over all processes; norm: of its gradient; rate: of learning; tokens: of
    all processes; seconds: its share of those since the readings before.
    """

    step: int
    losses: dict[str, float]
    norm: float
    rate: float
    tokens: int
    seconds: float


class Readings:
    """What is not read yet, of steps that all processes do alike."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._steps: list[tuple[int, list[str], float]] = []
        self._values: list[Tensor] = []
        self._seconds = 0.0

    def add(
        self,
        step: int,
        losses: Mapping[str, Tensor],
        norm: Tensor,
        rate: float,
        tokens: int,
        seconds: float,
    ) -> None:
        """Takes a step's losses and norm, float32[] each, without reading them. tokens: of this process."""
        self._steps.append((step, list(losses), rate))
        filled = torch.full((), float(tokens), device=norm.device)
        self._values.append(torch.stack([*losses.values(), norm, filled]).float())
        self._seconds += seconds

    def read(self) -> list[Reading]:
        """The readings of every step since the last time. Waits for the device."""
        if not self._steps:
            return []
        began = time.monotonic()
        sizes = [len(values) for values in self._values]
        means = mean_over_all({"all": torch.cat(self._values)}, self._ranks)["all"]
        columns = [part.tolist() for part in means.split(sizes)]  # type: ignore[no-untyped-call]  # untyped
        seconds = (self._seconds + time.monotonic() - began) / len(sizes)
        readings = [
            Reading(
                step,
                dict(zip(names, losses, strict=True)),
                norm,
                rate,
                round(tokens * self._ranks.size),
                seconds,
            )
            for (step, names, rate), (*losses, norm, tokens) in zip(self._steps, columns, strict=True)
        ]
        self._steps, self._values, self._seconds = [], [], 0.0
        return readings
