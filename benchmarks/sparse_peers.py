"""How fast is the inverted index beside BMP and kANNolo, on one thread, and does it find the same?

Documents and queries are those of sparse.py but for the vocabulary, of which kANNolo takes 65,536 terms. BMP
(Block-Max Pruning, alpha and beta 1) has the exact best of weights rounded to 8 bits; kANNolo compares all
documents, since its graph took 102 s to build for a tenth of them. Each peer runs in a process of its own
environment, one after the other. Times are of the processor, the least of several passes of each query.

Run: python -m benchmarks.sparse_peers PYTHON_OF_BMP PYTHON_OF_KANNOLO [--documents 200000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recording import dated, peer_figures, write
from benchmarks.sparse import DOCUMENTS, TOP, Query, best_rows, collection
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.sparse.inverted_index import InvertedIndex, build_inverted
from tercet.models.representations import SparseRows

VOCABULARY, PASSES = 60_000, 3

Figures = dict[str, Any]


def write_inputs(folder: Path, rows: SparseRows, queries: list[Query]) -> None:
    """What peers read."""
    np.savez(folder / "documents.npz", indptr=rows.indptr, token_ids=rows.token_ids, weights=rows.weights)
    lengths = [len(token_ids) for token_ids, _ in queries]
    np.savez(
        folder / "queries.npz",
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        token_ids=np.concatenate([token_ids for token_ids, _ in queries]),
        weights=np.concatenate([weights for _, weights in queries]),
    )


def tercet(folder: Path, rows: SparseRows, queries: list[Query]) -> Figures:
    """What the inverted index takes and finds."""
    (folder / "tercet").mkdir()
    arrays = ArrayFolder(folder / "tercet")
    started = time.perf_counter()
    build_inverted(rows, VOCABULARY, arrays)
    index = InvertedIndex.open(arrays, rows)
    build_seconds = time.perf_counter() - started
    found = [best_rows(index, *query)[:TOP].tolist() for query in queries]
    times = np.full(len(queries), np.inf)
    for _ in range(PASSES):
        for place, query in enumerate(queries):
            began = time.thread_time()
            best_rows(index, *query)
            times[place] = min(times[place], time.thread_time() - began)
    return {"build_seconds": build_seconds, "milliseconds": (times * 1e3).tolist(), "found": found}


def exact(rows: SparseRows, query: Query) -> npt.NDArray[np.float64]:
    """The scores of all documents."""
    dense = np.zeros(VOCABULARY)
    dense[query[0]] = query[1]
    documents = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return np.bincount(documents, dense[rows.token_ids] * rows.weights, len(rows)).astype(np.float64)


def recall(rows: SparseRows, queries: list[Query], found: list[list[int]]) -> float:
    """The mean share of what is found that scores at least as much as the exact last."""
    shares = []
    for query, some in zip(queries, found, strict=True):
        scores = exact(rows, query)
        last = np.partition(scores, len(scores) - TOP)[len(scores) - TOP]
        shares.append(np.count_nonzero(scores[some] >= last * (1 - 1e-6)) / TOP)
    return float(np.mean(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("bmp", help="Python with bmp")
    parser.add_argument("kannolo", help="Python with kannolo")
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    arguments = parser.parse_args()
    rows, queries = collection(np.random.default_rng(0), arguments.documents, VOCABULARY)
    with tempfile.TemporaryDirectory(prefix="tercet-sparse-") as name:
        folder = Path(name)
        write_inputs(folder, rows, queries)
        runs = {
            "tercet": tercet(folder, rows, queries),
            "bmp": peer_figures(arguments.bmp, "sparse_bmp.py", folder, TOP, PASSES),
            "kannolo": peer_figures(arguments.kannolo, "sparse_kannolo.py", folder, TOP, PASSES),
        }
    frequencies = np.bincount(rows.token_ids, minlength=VOCABULARY)
    postings = float(np.mean([frequencies[token_ids].sum() for token_ids, _ in queries]))
    record: Figures = {
        "load_average": round(os.getloadavg()[0], 1),
        "documents": arguments.documents,
        "postings_per_query": round(postings),
        "top": TOP,
        "searches": {
            name: {
                "build_seconds": round(run["build_seconds"], 1),
                "median_ms": round(float(np.median(run["milliseconds"])), 3),
                "nanoseconds_per_posting": round(float(np.mean(run["milliseconds"])) * 1e6 / postings, 2),
                f"recall@{TOP}": round(recall(rows, queries, run["found"]), 4),
            }
            for name, run in runs.items()
        },
    }
    write("sparse_peers", dated(record))
    for name, figures in record["searches"].items():
        print(f"{name:>8}", *(f"{key} {value}" for key, value in figures.items()))
    medians = {name: figures["median_ms"] for name, figures in record["searches"].items()}
    assert medians["tercet"] <= min(medians.values()), "a peer is faster"


if __name__ == "__main__":
    main()
