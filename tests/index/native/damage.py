"""Damaged inputs for the kernels that read stored bytes: whatever those say, a kernel reads and writes within
its arrays, and returns or raises its package's error of damaged numbers. Arrays of other shapes and types are
refused before any of it is read.

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
from index.native import kernels as index_kernels
from models.errors import CheckpointError
from models.native import kernels as models_kernels

Array = npt.NDArray[Any]
Random = np.random.Generator
LARGEST_SHARE = 0.5  # of an array's values that are damaged at once
MISSHAPEN = 0.02  # of all arrays
TESTS = Path(__file__).resolve().parents[2]
# Package → its kernels, and their error of damaged numbers.
PACKAGES: dict[str, tuple[Any, type[Exception]]] = {
    "index": (index_kernels, DamagedIndexError),
    "models": (models_kernels, CheckpointError),
}


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
    package: str = "index"


def targets(*packages: str) -> list[Target]:
    """Those of all files `damaged_*.py` of the packages' tests."""
    found: list[Target] = []
    for package in packages or PACKAGES:
        for path in sorted((TESTS / package / "native").glob("damaged_*.py")):
            found += importlib.import_module(f"tests.{package}.native.{path.stem}").TARGETS
    return found


def run(target: Target, inputs: int, seed: int) -> int:
    """Calls a kernel with so many damaged inputs; returns how many of them it refused."""
    random, refused, drawn = np.random.default_rng(seed), 0, target.draw(np.random.default_rng(seed))
    module, error = PACKAGES[target.package]
    variants = [module.kernels_of(name)[target.kernel] for name in module.AVAILABLE_INSTRUCTIONS]
    for number in range(inputs):
        if number % 100 == 0:
            drawn = target.draw(random)
        try:
            variants[number % len(variants)](*(_damaged(module, random, each) for each in drawn))
        except (error, ValueError, TypeError):
            refused += 1
    return refused


def _damaged(module: Any, random: Random, argument: Any) -> Any:
    """A copy of an argument, in which stored numbers are other ones or not."""
    if isinstance(argument, Stored):
        return _damaged_array(random, argument.array)
    if isinstance(argument, Records):
        layout = getattr(module, argument.layout)
        return tuple(
            layout(*(_damaged(module, random, each) for each in record)) for record in argument.records
        )
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _misshapen(random: Random, array: Array) -> Array:
    """An array of another length, number of dimensions or type, or one that is not contiguous."""
    match random.integers(4):
        case 0:
            return np.concatenate([array, array[:1]]) if random.integers(2) else array[1:].copy()
        case 1:
            return array[None] if random.integers(2) else array.reshape(-1)
        case 2:
            return array.astype(random.choice([np.int8, np.uint16, np.int32, np.int64, np.float32]))
        case _:
            return np.repeat(array, 2, axis=-1)[..., ::2]


def _damaged_array(random: Random, array: Array) -> Array:
    if random.random() < MISSHAPEN:
        return _misshapen(random, array)
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
