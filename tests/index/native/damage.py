"""Damaged inputs for the kernels that read stored bytes: whatever those say, a kernel reads and writes within
its arrays, and returns or raises DamagedIndexError.

With a module that sanitizers were compiled into, a step outside ends the process; `try_damage.py` tries many.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from index.errors import DamagedIndexError
from index.native import kernels

Array = npt.NDArray[Any]
Random = np.random.Generator
LARGEST_SHARE = 0.5  # of an array's values that are damaged at once


@dataclass(frozen=True)
class Stored:
    """An array that is read from a file."""

    array: Array


@dataclass(frozen=True)
class Records:
    """A tuple of records of one layout, each of arrays of which some are `Stored`."""

    layout: str
    records: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class Target:
    """A kernel, and whole inputs for it, drawn anew: arguments of which some are `Stored` or `Records`."""

    kernel: str
    draw: Callable[[Random], tuple[Any, ...]]


def targets() -> list[Target]:
    """Those of all files `damaged_*.py` beside this one."""
    found: list[Target] = []
    for path in sorted(Path(__file__).parent.glob("damaged_*.py")):
        found += importlib.import_module(f"tests.index.native.{path.stem}").TARGETS
    return found


def run(target: Target, inputs: int, seed: int) -> int:
    """Calls a kernel with so many damaged inputs; returns how many of them it refused."""
    random, refused, drawn = np.random.default_rng(seed), 0, target.draw(np.random.default_rng(seed))
    variants = [kernels.kernels_of(name)[target.kernel] for name in kernels.AVAILABLE_INSTRUCTIONS]
    for number in range(inputs):
        if number % 100 == 0:
            drawn = target.draw(random)
        try:
            variants[number % len(variants)](*(_damaged(random, each) for each in drawn))
        except (DamagedIndexError, ValueError):
            refused += 1
    return refused


def _damaged(random: Random, argument: Any) -> Any:
    """A copy of an argument, in which stored numbers are other ones or not."""
    if isinstance(argument, Stored):
        return _damaged_array(random, argument.array)
    if isinstance(argument, Records):
        layout = getattr(kernels, argument.layout)
        return tuple(layout(*(_damaged(random, each) for each in record)) for record in argument.records)
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _damaged_array(random: Random, array: Array) -> Array:
    damaged = array.copy()
    if not damaged.size or random.random() < 0.3:
        return damaged
    flat = damaged.reshape(-1).view(np.uint8).reshape(damaged.size, damaged.itemsize)
    count = 1 + int(random.integers(max(1, int(damaged.size * LARGEST_SHARE))) * random.random() ** 4)
    places = random.integers(damaged.size, size=count)
    match random.integers(4):
        case 0:  # any bits
            flat[places] = random.integers(0, 256, (count, damaged.itemsize), np.uint8)
        case 1:  # the largest or the least
            flat[places] = random.choice([0, 0x7F, 0x80, 0xFF], (count, 1)).astype(np.uint8)
        case 2:  # one bit
            flat[places, random.integers(damaged.itemsize)] ^= np.uint8(1 << random.integers(8))
        case _:  # the number of another place
            flat[places] = flat[random.integers(damaged.size, size=count)]
    return damaged
