"""What do the three dense kinds cost, and how much do they find?

200,000 vectors of 384 dimensions in 2,000 clusters with a decaying spectrum, stored as float16; queries from
the same distribution; the best 200 on one thread, against the exact ones. Also the private memory that
opening and searching adds (pages of mapped files are not private).

Run: python benchmarks/dense.py [--documents 200000]
"""

import argparse
import datetime
import json
import os
import platform
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from index.candidates import DenseOptions
from index.dense.index import DenseIndex, DenseKind, build_dense

RESULT = Path(__file__).parent / "results" / "dense.json"
DIMENSION, CLUSTERS, QUERIES, TOP = 384, 2_000, 300, 200
CASES: tuple[tuple[DenseKind, DenseOptions], ...] = (
    ("flat", DenseOptions()),
    ("hnsw", DenseOptions()),
    ("ivfpq", DenseOptions(nprobe=16)),
    ("ivfpq", DenseOptions()),
    ("ivfpq", DenseOptions(nprobe=128)),
)
RECALL_BAR = 0.99  # of HNSW with default options


def points(
    generator: np.random.Generator, centres: npt.NDArray[np.float32], count: int
) -> npt.NDArray[np.float32]:
    """Unit vectors around the centres; both follow a spectrum that decays as 1/√i."""
    spectrum = (1 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)
    noise = generator.standard_normal((count, DIMENSION), np.float32)
    vectors = (centres[generator.integers(0, len(centres), count)] + noise) * spectrum
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def private_bytes() -> int:
    """Anonymous memory of this process."""
    return sum(entry.anonymous for entry in psutil.Process().memory_maps(grouped=True))


def measured(
    index: DenseIndex, queries: npt.NDArray[np.float32], options: DenseOptions
) -> tuple[list[set[int]], Any]:
    """What each query finds, and the times in milliseconds."""
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        rows, _ = index.search(query, TOP, None, options)
        times.append((time.perf_counter() - started) * 1e3)
        found.append(set(rows.tolist()))
    return found, np.array(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    documents = parser.parse_args().documents
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((CLUSTERS, DIMENSION), np.float32)
    queries = points(generator, centres, QUERIES)
    cases = []
    with tempfile.TemporaryDirectory(prefix="tercet-dense-") as name:
        folder = Path(name)
        np.save(folder / "dense.npy", points(generator, centres, documents).astype(np.float16))
        vectors = np.load(folder / "dense.npy", mmap_mode="r")
        exact: list[set[int]] = []
        built: dict[DenseKind, float] = {}
        for kind, options in CASES:
            if kind not in built:
                started = time.perf_counter()
                build_dense(kind, vectors, folder)
                built[kind] = time.perf_counter() - started
            before = private_bytes()
            index = DenseIndex.open(kind, vectors, folder)
            measured(index, queries[:20], options)
            found, times = measured(index, queries, options)
            exact = exact or found
            cases.append(
                {
                    "kind": kind,
                    "ef_search": options.ef_search if kind == "hnsw" else None,
                    "nprobe": options.nprobe if kind == "ivfpq" else None,
                    "build_seconds": round(built[kind], 1),
                    "file_bytes": 0 if kind == "flat" else (folder / "dense.faiss").stat().st_size,
                    "private_bytes": private_bytes() - before,
                    "median_ms": round(float(np.median(times)), 3),
                    "p95_ms": round(float(np.percentile(times, 95)), 3),
                    f"recall@{TOP}": round(
                        float(np.mean([len(a & b) / len(b) for a, b in zip(found, exact, strict=True)])), 4
                    ),
                }
            )
            print(json.dumps(cases[-1]))
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "load_average": round(os.getloadavg()[0], 1),
        "documents": documents,
        "dimension": DIMENSION,
        "top": TOP,
        "cases": cases,
    }
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    default = next(
        case for case in cases if case["kind"] == "hnsw" and case["ef_search"] == DenseOptions().ef_search
    )
    assert float(str(default[f"recall@{TOP}"])) >= RECALL_BAR, f"HNSW finds less than {RECALL_BAR}"


def processor() -> str:
    """The processor's name as the kernel gives it."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


if __name__ == "__main__":
    main()
