"""What search_peers.py gives a peer, and what it wants back. For an environment with numpy alone."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

TOP, PROPOSED = 10, 200  # hits, and what each side proposes for them
PASSES = 3
SLOW_MS = 1000.0  # of a search that is not repeated
CLIENTS, SECONDS = os.cpu_count() or 1, 5.0  # that ask at a time, and for how long

Float32 = npt.NDArray[np.float32]
Search = Callable[[int], Sequence[int]]  # of a query's place


class Vectors:
    """dense: float32[N, D] of length 1; sparse: token ids and weights of each of N texts."""

    def __init__(self, file: Path) -> None:
        arrays = np.load(file)
        self.dense: Float32 = arrays["dense"]
        edges = arrays["indptr"][1:-1]
        self.sparse: list[tuple[list[int], list[float]]] = [
            (terms.tolist(), weights.tolist())
            for terms, weights in zip(
                np.split(arrays["token_ids"], edges), np.split(arrays["weights"], edges), strict=True
            )
        ]


def measured(search: Search, queries: int) -> dict[str, Any]:
    """What a search finds for each query, the milliseconds of its fastest run, asked by one client, and the
    queries answered a second where several ask at a time.
    """
    found, times = [], []
    for place in range(queries):
        runs: list[float] = []
        while len(runs) < PASSES and (not runs or runs[-1] < SLOW_MS):
            began = time.perf_counter()
            hits = search(place)
            runs.append(1000 * (time.perf_counter() - began))
        found.append([int(number) for number in hits])
        times.append(min(runs))
    return {"found": found, "milliseconds": times, "queries_a_second": _rate(search, queries)}


def _rate(search: Search, queries: int) -> float:
    began = time.perf_counter()

    def client(number: int) -> int:
        """How many queries it was answered."""
        answered, first = 0, number * queries // CLIENTS
        while answered == 0 or time.perf_counter() < began + SECONDS:
            search((first + answered) % queries)
            answered += 1
        return answered

    with ThreadPoolExecutor(CLIENTS) as clients:
        answered = sum(clients.map(client, range(CLIENTS)))
    return answered / (time.perf_counter() - began)


def main(build: Callable[[Vectors, Path, Vectors], dict[str, Search]]) -> None:
    """Takes DOCUMENTS.npz QUERIES.npz FOLDER; prints the seconds of building, and what is `measured` of each
    kind of search.
    """
    documents, queries, folder = Vectors(Path(sys.argv[1])), Vectors(Path(sys.argv[2])), Path(sys.argv[3])
    started = time.perf_counter()
    searches = build(documents, folder, queries)
    seconds = time.perf_counter() - started
    figures = {name: measured(search, len(queries.dense)) for name, search in searches.items()}
    print(json.dumps({"build_seconds": seconds, **figures}))
