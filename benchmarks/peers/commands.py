"""How fast a system takes writes, by scripts that run in environments of their own: NumPy alone.

Run as `python SCRIPT FOLDER`; prints one JSON object of rates and times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

DIMENSION, VOCABULARY, TERMS = 384, 30_000, 100
SINGLE, BATCHES, BATCH, VISIBLE = 500, 10, 100, 50


class Store(Protocol):
    """A collection of documents with a dense vector and lexical weights, by number."""

    def put(self, numbers: Sequence[int]) -> None:
        """Adds or replaces; returns when it is acknowledged."""

    def delete(self, number: int) -> None:
        """Removes one."""

    def nearest(self, number: int) -> int | None:
        """The document nearest to the dense vector that belongs to a number."""


def dense(number: int) -> np.ndarray:
    """float32[384] of unit length."""
    vector = np.random.default_rng([number, 1]).standard_normal(DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def sparse(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Terms int32[100] in order, and their weights float32[100]."""
    numbers = np.random.default_rng([number, 2])
    terms = np.sort(numbers.choice(VOCABULARY, TERMS, replace=False)).astype(np.int32)
    return terms, numbers.uniform(0.1, 2, TERMS).astype(np.float32)


def main(open_store: Callable[[Path], Store]) -> None:
    """Prints the figures of a new store; the process ends without closing it."""
    sys.stdout.write(json.dumps(speed(open_store(Path(sys.argv[1])))) + "\n")
    sys.stdout.flush()
    os._exit(0)


def speed(store: Store) -> dict[str, float]:
    """Acknowledged puts a second, one by one and by 100, and how long until searches know."""
    store.put(range(BATCH))  # what is made at the first write
    single = rate(SINGLE, lambda place: store.put([1000 + place]))
    batches = rate(
        BATCHES, lambda place: store.put(range(10_000 + place * BATCH, 10_000 + (place + 1) * BATCH))
    )
    seen, gone = [], []
    for number in range(50_000, 50_000 + VISIBLE):
        store.put([number])
        seen.append(until(lambda number=number: store.nearest(number) == number))  # type: ignore[misc]
        store.delete(number)
        gone.append(until(lambda number=number: store.nearest(number) != number))  # type: ignore[misc]
    return {
        "puts_a_second": round(single, 1),
        "documents_a_second_by_100": round(batches * BATCH, 1),
        "milliseconds_until_a_search_finds_a_put": round(float(np.median(seen)), 2),
        "milliseconds_until_a_search_misses_a_delete": round(float(np.median(gone)), 2),
    }


def rate(count: int, call: Callable[[int], None]) -> float:
    """Calls a second."""
    started = time.perf_counter()
    for place in range(count):
        call(place)
    return count / (time.perf_counter() - started)


def until(known: Callable[[], bool]) -> float:
    """Milliseconds until the answer is yes, the asking included."""
    started = time.perf_counter()
    while not known():
        if time.perf_counter() - started > 60:
            raise TimeoutError("a minute has passed")
    return (time.perf_counter() - started) * 1e3
