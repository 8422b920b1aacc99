"""Damaged inputs of `packed.c` and `statistics.c`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes, order_of
from tests.index.native.damage import Random, Stored, Target


def _strings(random: Random, most: int = 12) -> PackedBytes:
    drawn = {
        bytes(random.integers(97, 100, random.integers(5), np.uint8)) for _ in range(random.integers(most))
    }
    return PackedBytes.of(sorted(drawn))


def _stored(random: Random) -> tuple[Stored, Stored]:
    strings = _strings(random)
    return Stored(strings.data), Stored(strings.offsets)


def _find(random: Random) -> tuple[Any, ...]:
    strings, wanted = _strings(random), _strings(random)
    likely = np.arange(len(wanted))
    return (
        Stored(strings.data),
        Stored(strings.offsets),
        Stored(order_of(strings)),
        wanted.data,
        wanted.offsets,
        likely,
    )


def _new(random: Random) -> tuple[Any, ...]:
    strings = _strings(random)
    return Stored(strings.data), Stored(strings.offsets), Stored(order_of(strings))


def _first(random: Random) -> tuple[Any, ...]:
    strings = _strings(random)
    return Stored(strings.data), Stored(strings.offsets), int(random.integers(len(strings) + 2))


def _gather(random: Random) -> tuple[Any, ...]:
    strings = _strings(random)
    positions = random.integers(0, max(1, len(strings)), 4 if len(strings) else 0)
    return Stored(strings.data), Stored(strings.offsets), Stored(positions)


def _statistics(random: Random) -> tuple[Any, ...]:
    terms = np.flatnonzero(random.random(20) < 0.5).astype(np.int32)
    frequencies, masses = terms.copy(), terms.astype(np.int64)
    return Stored(terms), Stored(frequencies), Stored(masses), np.zeros(20, np.int64), np.zeros(20, np.int64)


TARGETS = [
    Target("find_packed", _find),
    Target("common_packed", lambda random: (*_stored(random), *_stored(random))),
    Target("sort_packed", _stored),
    Target("new_packed", _new),
    Target("first_packed", _first),
    Target("gather_packed", _gather),
    Target("hash_packed", _stored),
    Target("add_statistics", _statistics),
]
