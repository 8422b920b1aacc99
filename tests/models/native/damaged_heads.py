"""Damaged inputs of `heads.c`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.models.native.panels import LANES, by_lanes, short_panels
from tests.index.native.damage import Random, Stored, Target


def _states(random: Random) -> tuple[int, Stored]:
    tokens, width = int(random.integers(0, 100)), LANES * int(random.integers(1, 9))
    return width, Stored(random.normal(0, 1, (tokens, width)).astype(np.float32))


def _project(random: Random) -> tuple[Any, ...]:
    width, states = _states(random)
    columns = int(random.integers(1, 50))
    panels, scales = short_panels(random.normal(0, 1, (columns, width)).astype(np.float32))
    biases = by_lanes(random.normal(0, 1, columns).astype(np.float32))
    wrong = int(random.choice([-columns, LANES * len(panels) - columns + 1])) if random.random() < 0.1 else 0
    found = np.empty((len(states.array), columns + wrong), np.float32)
    return states, Stored(panels), Stored(scales), Stored(biases), found


def _weigh(random: Random) -> tuple[Any, ...]:
    width, states = _states(random)
    weights = Stored(random.normal(0, 1, width).astype(np.float32))
    bias = float(random.choice([0.1, np.nan, np.inf]))
    return states, weights, bias, np.empty(len(states.array), np.float32)


TARGETS = [Target("project_tokens", _project, "models"), Target("weigh_tokens", _weigh, "models")]
