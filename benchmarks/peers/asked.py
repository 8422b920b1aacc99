"""What search_peers.py gives a peer, and what it wants back. For an environment with numpy alone."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

TOP, PROPOSED = 10, 200  # hits, and what each side proposes for them
PASSES = 3

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


def main(build: Callable[[Vectors, Path, Vectors], dict[str, Search]]) -> None:
    """Takes DOCUMENTS.npz QUERIES.npz FOLDER; prints the seconds of building, and of each kind of search what
    it finds and the milliseconds of each query's fastest run.
    """
    documents, queries, folder = Vectors(Path(sys.argv[1])), Vectors(Path(sys.argv[2])), Path(sys.argv[3])
    started = time.perf_counter()
    searches = build(documents, folder, queries)
    result: dict[str, Any] = {"build_seconds": time.perf_counter() - started}
    for name, search in searches.items():
        found, times = [], []
        for place in range(len(queries.dense)):
            runs = []
            for _ in range(PASSES):
                began = time.perf_counter()
                hits = search(place)
                runs.append(1000 * (time.perf_counter() - began))
            found.append([int(number) for number in hits])
            times.append(min(runs))
        result[name] = {"found": found, "milliseconds": times}
    print(json.dumps(result))
