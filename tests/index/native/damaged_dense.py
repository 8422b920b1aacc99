"""Damaged inputs of `dense_scan.c` and `graph.c`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.index.native.damage import Random, Records, Stored, Target
from tests.index.native.test_graph import WIDTHS, drawn

DIMENSION = 70


def _records(random: Random) -> Records:
    sizes = random.integers(0, 9, 3)
    drawn = [random.standard_normal((size, DIMENSION)).astype(np.float16) for size in sizes]
    return Records("dense_vectors", tuple((Stored(each),) for each in drawn))


def _products(random: Random) -> tuple[Any, ...]:
    places, rows = random.integers(0, 3, 12), random.integers(0, 2, 12)
    return _records(random), Stored(places), Stored(rows), np.ones(DIMENSION, np.float32)


def _scan(random: Random) -> tuple[Any, ...]:
    records, bits = _records(random), random.integers(0, 256, 6, np.uint8)
    stretches, numbers = [], np.zeros(20, np.int64)
    for number, (stored,) in enumerate(records.records):
        documents = len(stored.array)
        kind = random.integers(3)
        numbers[: min(documents, 20)] = np.arange(min(documents, 20)) if kind == 1 else 0
        last = min(documents, 20) if kind == 1 and documents else documents if kind != 1 else 0
        stretches.append((number, number, 0, last, int(kind == 1), 2 * number if kind == 2 else -1))
    floor = np.full(1, -np.inf, np.float32)
    query, k = np.ones(DIMENSION, np.float32), int(random.integers(1, 9))
    return records, Stored(np.array(stretches, np.int64)), Stored(numbers), bits, query, k, floor


def _walk(random: Random) -> tuple[Any, ...]:
    vectors, links, offsets, entry, top = drawn(int(random.integers(1 << 30)), 20)
    stored = (Stored(vectors), Stored(links.view(np.uint8)), Stored(offsets.view(np.uint8)), Stored(WIDTHS))
    return (
        Records("dense_graph", (stored,)),
        np.ones(5, np.float32),
        entry,
        int(top),
        int(random.integers(1, 30)),
    )


TARGETS = [
    Target("products_at", _products),
    Target("exact_products_at", _products),
    Target("scan_vectors", _scan),
    Target("walk_graph", _walk),
]
