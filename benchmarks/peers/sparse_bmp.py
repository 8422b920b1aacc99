"""Searches the given queries with BMP's Block-Max Pruning, in its environment. Prints one JSON line.

Weights of documents become integers up to 255, of which it has the exact best; those of queries are
thousandths.

Run: PYTHON_OF_BMP sparse_bmp.py FOLDER TOP PASSES, where FOLDER has documents.npz and queries.npz
"""

import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
from bmp import Indexer, Searcher

BLOCK = 32


def main() -> None:
    folder, top, passes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    stored, asked = np.load(folder / "documents.npz"), np.load(folder / "queries.npz")
    started = time.perf_counter()
    largest = stored["weights"].max()
    impacts = np.clip(np.round(stored["weights"] / largest * 255), 1, 255).astype(int).tolist()
    terms, offsets = stored["token_ids"].astype(str).tolist(), stored["indptr"].tolist()
    indexer = Indexer(str(folder / "bmp"), bsize=BLOCK, compress_range=False)
    for row, (first, last) in enumerate(pairwise(offsets)):
        indexer.add_document(str(row), dict(zip(terms[first:last], impacts[first:last], strict=True)))
    indexer.finish()
    searcher = Searcher(str(folder / "bmp"))
    build_seconds = time.perf_counter() - started
    edges = asked["indptr"].tolist()
    queries = [
        {
            str(term): float(round(weight * 1000))
            for term, weight in zip(asked["token_ids"][a:b], asked["weights"][a:b], strict=True)
        }
        for a, b in pairwise(edges)
    ]
    times = np.full(len(queries), np.inf)
    found = []
    for number in range(passes):
        for place, query in enumerate(queries):
            began = time.thread_time()
            ids, _ = searcher.search(query, k=top, alpha=1.0, beta=1.0)
            times[place] = min(times[place], time.thread_time() - began)
            if number == 0:
                found.append([int(id) for id in ids])
    print(
        json.dumps({"build_seconds": build_seconds, "milliseconds": (times * 1e3).tolist(), "found": found})
    )


if __name__ == "__main__":
    main()
