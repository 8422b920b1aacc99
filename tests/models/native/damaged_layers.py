"""Damaged inputs of `layers.c`: all numbers are those of a file, or of what they were made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.models.native.panels import LANES, byte_panels
from tercet.models.representations import offsets_of
from tests.index.native.damage import Random, Records, Stored, Target

EPSILON = 1e-6


class Shape:
    """Sizes of a small encoder, drawn."""

    def __init__(self, random: Random) -> None:
        self.width = LANES * int(random.integers(1, 5))
        self.inner = LANES * int(random.integers(1, 6))
        self.heads = int(random.choice([1, 2, 4, 16]))
        self.offsets = offsets_of(random.integers(0, 30, int(random.integers(0, 6))))
        self.tokens = int(self.offsets[-1])


def _floats(random: Random, *shape: int) -> Stored:
    return Stored(random.normal(0, 1, shape).astype(np.float32))


def _layer(random: Random, shape: Shape) -> tuple[Any, ...]:
    """The arrays of a record `encoder_layer`."""

    def matrix(rows: int, columns: int) -> tuple[Stored, Stored, Stored]:
        numbers = random.integers(-63, 64, (rows, columns)).astype(np.int8)
        panels = columns // LANES
        return Stored(byte_panels(numbers)), _floats(random, panels, LANES), _floats(random, panels, LANES)

    width, inner = shape.width, shape.inner
    norm = (_floats(random, width // LANES, LANES), _floats(random, width // LANES, LANES))
    return (
        *matrix(width, 3 * width),
        *matrix(width, width),
        *norm,
        *matrix(width, inner),
        *matrix(inner, width),
        *norm,
    )


def _layers(random: Random, shape: Shape, count: int) -> Records:
    return Records("encoder_layer", tuple(_layer(random, shape) for _ in range(count)))


def _count(random: Random, number: int) -> int:
    """The number, or now and then one that does not fit."""
    if random.random() < 0.8:
        return number
    return int(random.choice([0, -1, number + 1, 2 * number, 2**31, 2**62, -(2**63)]))


def _run(random: Random) -> tuple[Any, ...]:
    shape = Shape(random)
    layers = _layers(random, shape, int(random.choice([0, 1, 1, 1, 2])))
    states = _floats(random, shape.tokens, shape.width)
    return layers, Stored(shape.offsets), _count(random, shape.heads), EPSILON, states


def _project(random: Random) -> tuple[Any, ...]:
    shape = Shape(random)
    projected = np.empty((shape.tokens, 3 * shape.width), np.float32)
    return _layers(random, shape, 1), _floats(random, shape.tokens, shape.width), projected


def _attend(random: Random) -> tuple[Any, ...]:
    shape = Shape(random)
    first, last = sorted(random.integers(0, shape.heads + 1, 2).tolist())
    return (
        _floats(random, shape.tokens, 3 * shape.width),
        _count(random, shape.heads),
        _count(random, first),
        _count(random, last),
        np.empty((shape.tokens, shape.width), np.float32),
    )


def _finish(random: Random) -> tuple[Any, ...]:
    shape = Shape(random)
    attended, states = (_floats(random, shape.tokens, shape.width) for _ in range(2))
    return _layers(random, shape, 1), EPSILON, attended, states


def _normalize(random: Random) -> tuple[Any, ...]:
    shape = Shape(random)
    width = shape.width + int(random.random() < 0.1)
    return _floats(random, width), _floats(random, width), EPSILON, _floats(random, shape.tokens, width)


TARGETS = [
    Target("run_layers", _run, "models"),
    Target("project_layer", _project, "models"),
    Target("attend_with_heads", _attend, "models"),
    Target("finish_layer", _finish, "models"),
    Target("normalize_states", _normalize, "models"),
]
