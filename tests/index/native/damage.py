"""Damaged inputs for the kernels that read stored bytes: whatever those say, a kernel reads and writes within
its arrays, and returns or raises its package's error of damaged numbers. Arrays of other shapes and types are
refused before any of it is read.

A step outside of an argument ends the process, as pages that nobody may touch are around each; of memory
that a kernel asks for itself, a module with sanitizers ends it. `try_damage.py` tries many.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels as index_kernels
from tercet.models.errors import CheckpointError
from tercet.models.native import kernels as models_kernels
from tests.index.native.guarded import Rooms

Array = npt.NDArray[Any]
Bool = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
Random = np.random.Generator
AT_ONCE = 100  # damaged inputs of one that was drawn
LARGEST_SHARE = 0.5  # of an array's values that are damaged at once
MISSHAPEN = 0.05  # of all inputs, with one array
EXTREMES = np.array([0, 0x7F, 0x80, 0xFF], np.uint8)
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
class _Place:
    """Stands for an array: its number among those that are held."""

    number: int


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
    random, rooms = np.random.default_rng(seed), Rooms()
    module, error = PACKAGES[target.package]
    variants = [module.kernels_of(name)[target.kernel] for name in module.AVAILABLE_INSTRUCTIONS]
    refused = 0
    for number, first in enumerate(range(0, inputs, AT_ONCE)):
        count = min(AT_ONCE, inputs - first)
        damaged = _Damaged(module, random, target.draw(random), rooms, count, at_end=number % 4 > 0)
        for place in range(count):
            try:
                variants[place % len(variants)](*damaged.arguments(place))
            except (error, ValueError, TypeError):
                refused += 1
    return refused


class _Damaged:
    """Damaged copies of one input, all made at once; each takes its turn in the same guarded memory."""

    def __init__(
        self, module: Any, random: Random, drawn: tuple[Any, ...], rooms: Rooms, count: int, *, at_end: bool
    ) -> None:
        """at_end: whether arrays end where their memory does, else they begin there."""
        self._module = module
        self._random = random
        self._held: list[Array] = []
        self._stored: list[int] = []  # of the arrays held
        self._form = self._guarded(drawn, rooms, at_end=at_end)
        self._whole = self._built(self._form)
        self._misshapen = random.random(count) < MISSHAPEN
        self._bytes = [_bytes_of(each) for each in self._held]
        self._copies = [np.broadcast_to(each.copy(), (count, *each.shape)) for each in self._bytes]
        chosen = _chosen(random, [self._held[place].size for place in self._stored], count)
        for place, inputs in zip(self._stored, chosen, strict=True):
            self._copies[place] = _damaged(random, self._bytes[place], inputs)

    def arguments(self, place: int) -> Any:
        """The tuple of one call, until others are asked for. Raises what records of wrong arrays do."""
        for held, copies in zip(self._bytes, self._copies, strict=True):
            held[...] = copies[place]
        if self._misshapen[place] and self._stored:
            return self._built(self._form, int(self._random.choice(self._stored)))
        return self._whole

    def _guarded(self, argument: Any, rooms: Rooms, *, at_end: bool) -> Any:
        """An argument with places of arrays that are held."""
        if isinstance(argument, tuple):
            return tuple(self._guarded(each, rooms, at_end=at_end) for each in argument)
        if isinstance(argument, Records):
            return Records(argument.layout, self._guarded(argument.records, rooms, at_end=at_end))
        place = len(self._held)
        if isinstance(argument, Stored):
            self._stored.append(place)
            argument = argument.array
        if not isinstance(argument, np.ndarray):
            return argument
        self._held.append(rooms.hold(place, argument, at_end=at_end))
        return _Place(place)

    def _built(self, argument: Any, misshapen: int = -1) -> Any:
        """What a call takes. misshapen: the array that gets another shape or type."""
        if isinstance(argument, tuple):
            return tuple(self._built(each, misshapen) for each in argument)
        if isinstance(argument, Records):
            layout = getattr(self._module, argument.layout)
            return tuple(layout(*self._built(record, misshapen)) for record in argument.records)
        if not isinstance(argument, _Place):
            return argument
        array = self._held[argument.number]
        return _misshapen(self._random, array) if argument.number == misshapen else array


def _bytes_of(array: Array) -> UInt8:
    """The bytes of each value: uint8[values, bytes]."""
    return array.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)


def _misshapen(random: Random, array: Array) -> Array:
    """An array of another length, number of dimensions or type, or one that is not contiguous."""
    match random.integers(4):
        case 0:
            return np.concatenate([array, array[:1]]) if random.integers(2) else array[1:].copy()
        case 1:
            return array[None] if random.integers(2) else array.reshape(-1)
        case 2:
            with np.errstate(all="ignore"):  # of numbers that the type does not hold
                return array.astype(random.choice([np.int8, np.uint16, np.int32, np.int64, np.float32]))
        case _:
            return np.repeat(array, 2, axis=-1)[..., ::2]


def _chosen(random: Random, sizes: list[int], count: int) -> Bool:
    """Which arrays of so many values are damaged in which inputs, bool[arrays, count]: in each input one, in
    some inputs few of the others and in some most.
    """
    chosen = random.random((len(sizes), count)) < random.random(count) ** 2
    whole = np.flatnonzero(sizes)
    if len(whole):
        chosen[random.choice(whole, count), np.arange(count)] = True
    chosen[np.equal(sizes, 0)] = False
    return chosen


def _damaged(random: Random, whole: UInt8, inputs: Bool) -> UInt8:
    """Copies of an array's bytes, uint8[count, values, bytes], damaged where inputs bool[count] is true."""
    copies = np.repeat(whole[None], len(inputs), axis=0)
    values, size = whole.shape
    numbers = np.flatnonzero(inputs)
    if not len(numbers):
        return copies
    most = max(1, int(values * LARGEST_SHARE))
    counts = 1 + (most * random.random(len(numbers)) * random.random(len(numbers)) ** 4).astype(np.int64)
    owners, kinds = np.repeat(numbers, counts), np.repeat(random.integers(4, size=len(numbers)), counts)
    places = random.integers(values, size=len(owners))
    former = copies[owners, places]
    bits = np.zeros_like(former)
    bits[np.arange(len(owners)), random.integers(size, size=len(owners))] = 1 << random.integers(
        8, size=len(owners)
    )
    changed = (
        random.integers(0, 256, former.shape, np.uint8),  # any bits
        np.broadcast_to(random.choice(EXTREMES, (len(owners), 1)), former.shape),
        former ^ bits,
        copies[owners, random.integers(values, size=len(owners))],  # the number of another place
    )
    copies[owners, places] = np.choose(kinds[:, None], changed)
    return copies
