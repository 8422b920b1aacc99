"""What do the dense kinds cost, and how much do they find?

200,000 vectors of 384 dimensions in 2,000 clusters with a decaying spectrum, stored as float16; queries from
the same distribution; the best 200 on one thread, against the exact ones. Also the private memory that
opening and searching adds (pages of mapped files are not private).

Then the same beside FAISS called directly: the same files and parameters over a copy of the vectors that
FAISS owns, query by query in turn, lists with FAISS's own refinement. And graphs of 24,000 vectors of which
2,000 or 16,000 are equal: the least recall of a query, near the equal ones and elsewhere, where of equal
scores any will do.

Run: python -m benchmarks.dense [--documents 200000]
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.recording import dated, write
from tercet.index.candidates import DenseOptions
from tercet.index.dense.building import build_dense
from tercet.index.dense.index import LIST_CANDIDATES, DenseIndex, least_effort, usual_effort
from tercet.index.dense.kinds import DenseKind
from tercet.index.dense.library import INDEX_FILE, faiss
from tercet.index.files.array_folder import ArrayFolder

Matrix = npt.NDArray[np.float32]
Search = Callable[[Matrix], npt.NDArray[np.int64]]

DIMENSION, CLUSTERS, QUERIES, TOP = 384, 2_000, 300, 200
ROUNDS = 5
SPECTRUM = (1 / np.sqrt(np.arange(1, DIMENSION + 1))).astype(np.float32)
CASES: tuple[tuple[DenseKind, DenseOptions], ...] = (
    ("flat", DenseOptions()),
    ("hnsw", DenseOptions(ef_search=least_effort(TOP))),
    ("hnsw", DenseOptions()),
    ("ivfpq", DenseOptions(nprobe=16)),
    ("ivfpq", DenseOptions(nprobe=32)),
    ("ivfpq", DenseOptions()),
    ("ivfpq", DenseOptions(nprobe=128)),
    ("ivfrabitq", DenseOptions(nprobe=16)),
    ("ivfrabitq", DenseOptions(nprobe=32)),
    ("ivfrabitq", DenseOptions()),
    ("ivfrabitq", DenseOptions(nprobe=128)),
)
RECALL_BAR = 0.99  # of HNSW with default options
DIRECT_BAR = 1.1  # times the time of FAISS called directly
EQUAL_DOCUMENTS, EQUAL, EQUAL_BAR = 48_000, (2_000, 16_000), 0.9  # so many that graphs are walked


def unit(vectors: Matrix) -> Matrix:
    """float32[N, D] of length 1."""
    scaled: Matrix = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled


def around(generator: np.random.Generator, centres: Matrix) -> Matrix:
    """Unit vectors, one around each centre; all follow a spectrum that decays as 1/√i."""
    return unit((centres + generator.standard_normal(centres.shape, np.float32)) * SPECTRUM)


def points(generator: np.random.Generator, centres: Matrix, count: int) -> Matrix:
    """Unit vectors around the centres, drawn at random."""
    return around(generator, centres[generator.integers(0, len(centres), count)])


def private_bytes() -> int:
    """Anonymous memory of this process."""
    return sum(entry.anonymous for entry in psutil.Process().memory_maps(grouped=True))


def measured(index: DenseIndex, queries: Matrix, options: DenseOptions) -> tuple[list[set[int]], Any]:
    """What each query finds, and the times in milliseconds."""
    found, times = [], []
    for query in queries:
        started = time.perf_counter()
        rows, _ = index.search(query, TOP, None, options)
        times.append((time.perf_counter() - started) * 1e3)
        found.append(set(rows.tolist()))
    return found, np.array(times)


def direct(kind: DenseKind, vectors: npt.NDArray[np.float16], folder: Path) -> Search:
    """The search of FAISS by itself, with what the default options come to."""
    dimension, options = vectors.shape[1], DenseOptions()
    owned = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    owned.add(vectors.astype(np.float32))
    if kind == "flat":
        return lambda query: owned.search(query[None], TOP)[1][0]
    index = faiss.read_index(str(folder / INDEX_FILE))
    if kind == "hnsw":
        index.storage, index.own_fields = owned, False
        parameters = faiss.SearchParametersHNSW(efSearch=usual_effort(TOP))
        return lambda query: index.search(query[None], TOP, params=parameters)[1][0]
    parameters = faiss.SearchParametersIVF(nprobe=options.nprobe)
    if kind == "ivfrabitq":
        parameters = faiss.SearchParametersPreTransform(index_params=parameters)
    refined = faiss.IndexRefine(index, owned)
    parameters = faiss.IndexRefineSearchParameters(
        k_factor=LIST_CANDIDATES[kind], base_index_params=parameters
    )
    return lambda query: refined.search(query[None], TOP, params=parameters)[1][0]


def beside_faiss(
    kind: DenseKind,
    vectors: npt.NDArray[np.float16],
    folder: Path,
    queries: Matrix,
    exact: list[set[int]],
) -> dict[str, Any]:
    """Our search and FAISS's own in turn; of each query the quickest round counts."""
    index = DenseIndex.open(kind, vectors, ArrayFolder(folder), folder)
    searches = {"ours": lambda query: index.search(query, TOP)[0], "direct": direct(kind, vectors, folder)}
    times: dict[str, list[float]] = {name: [] for name in searches}
    recalls: dict[str, list[float]] = {name: [] for name in searches}
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    for _ in range(ROUNDS):
        for query, best in zip(queries, exact, strict=True):
            for name, search in searches.items():
                started = time.perf_counter()
                rows = search(query)
                times[name].append((time.perf_counter() - started) * 1e3)
                recalls[name].append(len(set(rows.tolist()) & best) / len(best))
    faiss.omp_set_num_threads(threads)
    medians = {
        name: float(np.median(np.reshape(found, (ROUNDS, len(queries))).min(axis=0)))
        for name, found in times.items()
    }
    return {
        "kind": kind,
        **{f"{name}_ms": round(median, 3) for name, median in medians.items()},
        **{f"{name}_recall@{TOP}": round(float(np.mean(found)), 4) for name, found in recalls.items()},
        "ratio": round(medians["ours"] / medians["direct"], 3),
    }


def among_equal(equal: int, folder: Path) -> dict[str, Any]:
    """The least recall of a query where so many vectors are equal."""
    generator = np.random.default_rng(1)
    centres = generator.standard_normal((CLUSTERS, DIMENSION), np.float32)
    found = points(generator, centres, EQUAL_DOCUMENTS)
    same = np.sort(generator.choice(EQUAL_DOCUMENTS, equal, replace=False))
    found[same] = found[same[0]]
    vectors = found.astype(np.float16)
    arrays = ArrayFolder(folder)
    build_dense("hnsw", vectors, arrays)
    index, exact = DenseIndex.open("hnsw", vectors, arrays, folder), DenseIndex.scanning(vectors)
    elsewhere = points(generator, centres, QUERIES // 2)
    near = found[same[0]] + 0.5 * points(generator, centres, QUERIES // 2)
    recalls: dict[str, list[float]] = {}
    times = []
    for place, queries in (("elsewhere", elsewhere), ("near", near)):
        recalls[place] = []
        for query in queries:
            started = time.perf_counter()
            scores = index.search(query, TOP)[1]
            times.append((time.perf_counter() - started) * 1e3)
            lowest = exact.search(query, TOP)[1][TOP - 1]
            recalls[place].append(min(1.0, float(np.count_nonzero(scores >= lowest)) / TOP))
    return {
        "documents": EQUAL_DOCUMENTS,
        "equal": equal,
        **{f"least_recall@{TOP}_{place}": round(min(each), 4) for place, each in recalls.items()},
        "median_ms": round(float(np.median(times)), 3),
        "p95_ms": round(float(np.percentile(times, 95)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=200_000)
    documents = parser.parse_args().documents
    generator = np.random.default_rng(0)
    centres = generator.standard_normal((CLUSTERS, DIMENSION), np.float32)
    queries = points(generator, centres, QUERIES)
    cases: list[dict[str, Any]] = []
    faiss_cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tercet-dense-") as name:
        folder = Path(name)
        np.save(folder / "dense.npy", points(generator, centres, documents).astype(np.float16))
        vectors = np.load(folder / "dense.npy", mmap_mode="r")
        exact: list[set[int]] = []
        built: dict[DenseKind, float] = {}
        for kind, options in CASES:
            if kind not in built:
                started = time.perf_counter()
                build_dense(kind, vectors, ArrayFolder(folder))
                built[kind] = time.perf_counter() - started
            before = private_bytes()
            index = DenseIndex.open(kind, vectors, ArrayFolder(folder), folder)
            measured(index, queries[:20], options)
            found, times = measured(index, queries, options)
            exact = exact or found
            cases.append(
                {
                    "kind": kind,
                    "ef_search": (options.ef_search or usual_effort(TOP)) if kind == "hnsw" else None,
                    "nprobe": options.nprobe if kind in LIST_CANDIDATES else None,
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
            if options == DenseOptions():
                faiss_cases.append(beside_faiss(kind, vectors, folder, queries, exact))
                print(json.dumps(faiss_cases[-1]))
    equal_cases = []
    for equal in EQUAL:
        with tempfile.TemporaryDirectory(prefix="tercet-dense-") as name:
            equal_cases.append(among_equal(equal, Path(name)))
            print(json.dumps(equal_cases[-1]))
    record = {
        "load_average": round(os.getloadavg()[0], 1),
        "documents": documents,
        "dimension": DIMENSION,
        "top": TOP,
        "cases": cases,
        "beside_faiss": faiss_cases,
        "equal_vectors": equal_cases,
    }
    write("dense", dated(record))
    default = next(case for case in cases if case["ef_search"] == usual_effort(TOP))
    assert float(str(default[f"recall@{TOP}"])) >= RECALL_BAR, f"HNSW finds less than {RECALL_BAR}"
    for case in faiss_cases:
        assert case["ratio"] <= DIRECT_BAR, f"{case['kind']} takes {case['ratio']} times as long as FAISS"
    for case in equal_cases:
        least = min(case[f"least_recall@{TOP}_{place}"] for place in ("near", "elsewhere"))
        assert least >= EQUAL_BAR, f"a query among {case['equal']} equal vectors finds {least}"


if __name__ == "__main__":
    main()
