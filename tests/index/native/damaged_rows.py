"""Damaged inputs of `rows.c`, `float16.c` and `facets.c`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes
from tercet.models.representations import offsets_of
from tests.index.native.damage import Random, Records, Stored, Target

DOCUMENTS = 30


def _codes(random: Random, values: int, places: int = 40) -> tuple[Stored, Stored]:
    codes = random.integers(0, max(1, values), places if values else 0).astype(np.int32)
    return Stored(codes), Stored(np.sort(random.integers(0, DOCUMENTS, len(codes))))


def _count(random: Random) -> tuple[Any, ...]:
    return (*_codes(random, 5), 5)


def _group(random: Random) -> tuple[Any, ...]:
    codes, rows = _codes(random, 5)
    pairs = np.unique(np.stack([codes.array, rows.array]), axis=1)
    return codes, rows, Stored(offsets_of(np.bincount(pairs[0], minlength=5)))


def _bits(random: Random) -> tuple[Any, ...]:
    return Stored(random.integers(0, 64, 20).astype(np.uint32)), np.zeros(8, np.uint8)


def _widen(random: Random) -> tuple[Any, ...]:
    stored = random.standard_normal((9, 11)).astype(np.float16)
    return Stored(stored), Stored(random.integers(0, 9, 5)), np.empty((5, 11), np.float32)


def _facet(random: Random) -> tuple[Any, ...]:
    columns = []
    for _ in range(random.integers(1, 4)):
        strings = PackedBytes.of(
            sorted(
                {b"value %d" % number for number in random.integers(0, 200, random.integers(120)).tolist()}
            )
        )
        codes, rows = _codes(random, len(strings), 150)
        columns.append((Stored(strings.data), Stored(strings.offsets), codes, rows))
    sizes, bytes_of_one = np.full(len(columns), DOCUMENTS), -(-DOCUMENTS // 8)
    begins = np.where(random.random(len(columns)) < 0.5, -1, bytes_of_one * np.arange(len(columns)))
    bits = random.integers(0, 256, bytes_of_one * len(columns)).astype(np.uint8)
    return Records("keyword_column", tuple(columns)), sizes, bits, begins, int(random.integers(1, 9)), 5


TARGETS = [
    Target("count_rows", _count),
    Target("group_rows", _group),
    Target("set_bits", _bits),
    Target("widen_rows", _widen),
    Target("count_facet", _facet),
]
