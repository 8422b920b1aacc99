"""Searches the given queries with kANNolo's exhaustive index, in its environment. Prints one JSON line.

Run: PYTHON_OF_KANNOLO sparse_kannolo.py FOLDER TOP PASSES, as sparse_bmp.py
"""

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import kannolo
import numpy as np


def main() -> None:
    folder, top, passes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    stored, asked = np.load(folder / "documents.npz"), np.load(folder / "queries.npz")
    started = time.perf_counter()
    arrays = stored["token_ids"].astype(np.int32), stored["weights"], stored["indptr"].astype(np.int64)
    index = kannolo.SparseFlatIndex.build_from_arrays(*arrays)
    build_seconds = time.perf_counter() - started
    edges = asked["indptr"].tolist()
    queries = [(asked["token_ids"][a:b].astype(np.int32), asked["weights"][a:b]) for a, b in pairwise(edges)]
    times = np.full(len(queries), np.inf)
    found = []
    for number in range(passes):
        for place, query in enumerate(queries):
            began = time.thread_time()
            answer = index.search(*query, top)
            times[place] = min(times[place], time.thread_time() - began)
            if number == 0:
                found.append(np.asarray(answer[1]).astype(int).tolist())
    print(
        json.dumps({"build_seconds": build_seconds, "milliseconds": (times * 1e3).tolist(), "found": found})
    )


if __name__ == "__main__":
    main()
