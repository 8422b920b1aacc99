"""How long does late interaction take, of what the machine can do, and how many bytes has a token?

32 query tokens meet 400 candidates of 200 tokens: vectors of length 1 in 2,000 clusters, of 128 and of
1,024 values, stored by each codec. Tokens of a query are near some of one document. Times are of
`Snapshot.search` after retrieval: near scores of all candidates, exact ones of those that can be hits,
order, and texts of ten hits. The machine's limit is what its integer products reach on tiles in
cache, and OpenBLAS on a matrix product of the same shape, on as many threads.

Run: python -m benchmarks.late [--repeats 30]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from benchmarks.recording import dated, write
from tercet.index.candidates import CandidateLimits, Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.codebook import TILE
from tercet.index.collection import Collection
from tercet.index.native.kernels import centroid_products
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.index.token_vectors.integer_query import LANES
from tercet.models.representations import Float32, Representations, SparseRows, TokenVectors

QUERY_TOKENS, CANDIDATES, TOKENS, DOCUMENTS, CLUSTERS, QUERIES = 32, 400, 200, 800, 2_000, 10
CODECS: tuple[TokenCodec, ...] = ("float16", "int8", "residual4", "residual2", "residual1")
NOISE = 0.7  # length of what is added to a query token
TILE_BYTES = 2**16
BARS = {128: 3.0, 1024: 15.0}  # milliseconds


def vectors(generator: np.random.Generator, centres: Float32, count: int) -> Float32:
    """Unit vectors around the centres, under a spectrum that decays as 1/√i."""
    dimension = centres.shape[1]
    spectrum = (1 / np.sqrt(np.arange(1, dimension + 1))).astype(np.float32)
    noise = 0.5 * generator.standard_normal((count, dimension), np.float32)
    found = (centres[generator.integers(0, len(centres), count)] + noise) * spectrum
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return found


def texts(generator: np.random.Generator, centres: Float32, count: int, tokens: int) -> Representations:
    dense = generator.standard_normal((count, 16)).astype(np.float32)
    return Representations(
        np.full(count, tokens + 1),
        np.zeros(count, np.bool_),
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        SparseRows(np.zeros(count + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32)),
        TokenVectors(vectors(generator, centres, count * tokens), tokens * np.arange(count + 1)),
    )


def asked(generator: np.random.Generator, documents: Representations) -> Representations:
    """Queries of tokens that lie near those of one document each."""
    assert documents.colbert is not None
    dimension = documents.colbert.vectors.shape[1]
    queries = texts(generator, np.zeros((1, dimension), np.float32), QUERIES, QUERY_TOKENS)
    assert queries.colbert is not None
    tokens = generator.integers(0, TOKENS, (QUERIES, QUERY_TOKENS))
    rows = generator.choice(len(documents), QUERIES, replace=False)[:, None]
    near = documents.colbert.vectors[(rows * TOKENS + tokens).reshape(-1)]
    mixed = near + NOISE * queries.colbert.vectors
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    return replace(queries, colbert=TokenVectors(mixed, queries.colbert.offsets))


def integer_peak(dimension: int, threads: int) -> float:
    """10^9 multiplications a second of the byte products, on tiles that stay in cache."""
    tiles = TILE_BYTES // (TILE * dimension)
    times = 4_000_000 // (dimension * tiles)

    def run(_: int) -> None:
        groups = QUERY_TOKENS // LANES
        query, sums = (
            np.ones((groups, dimension // 4, LANES, 4), np.int8),
            np.zeros((groups, LANES), np.int32),
        )
        documents, values = (
            np.ones((tiles, TILE, dimension), np.uint8),
            np.empty((tiles * TILE, QUERY_TOKENS), np.int16),
        )
        for _ in range(times):
            centroid_products(query, sums, documents, 0, values)

    with ThreadPoolExecutor(threads) as pool:
        seconds = fastest(lambda: list(pool.map(run, range(threads))), 5)
    return threads * times * QUERY_TOKENS * tiles * TILE * dimension / seconds / 1e9


def float_peak(dimension: int, threads: int) -> float:
    """10^9 multiplications a second of OpenBLAS in float32."""
    query = np.ones((QUERY_TOKENS, dimension), np.float32)
    document = np.ones((CANDIDATES * TOKENS, dimension), np.float32)
    with threadpool_limits(threads, user_api="blas"):
        seconds = fastest(lambda: np.matmul(query, document.T), 5)
    return QUERY_TOKENS * len(document) * dimension / seconds / 1e9


def fastest(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest run after a first one."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def built(root: Path, codec: TokenCodec, encoded: Representations) -> Collection:
    """A collection of the documents in one segment."""
    assert encoded.colbert is not None
    dimension = encoded.colbert.vectors.shape[1]
    codebook = None
    if codec in RESIDUAL_BITS:
        codebook = train_codebook(encoded.colbert.vectors, RESIDUAL_BITS[codec])
    name = f"{codec}-{dimension}"
    settings = CollectionSettings(name, "none", "none", 16, dimension, 1000, "flat", codec, codebook=codebook)
    collection = Collection.create(root, name, settings)
    with collection.writer() as writer:
        writer.add([Document(f"d{row}", "text") for row in range(len(encoded))], encoded)
        writer.publish()
    return collection


def timed(collection: Collection, queries: Representations, repeats: int) -> npt.NDArray[np.float64]:
    """Milliseconds after retrieval of every query, the fastest of some repeats each."""
    snapshot = collection.snapshot()
    limits, times = CandidateLimits(CANDIDATES, 0), []
    for row in range(len(queries)):
        query = queries.take(np.array([row]))
        runs = [snapshot.search(query, candidates=limits).score_seconds for _ in range(repeats)]
        times.append(1000 * min(runs[1:]))
    return np.array(times)


def token_bytes(collection: Collection) -> float:
    """Bytes of a stored token vector."""
    (rows,) = collection.snapshot().rows(DOCUMENTS, DOCUMENTS * TOKENS)
    store = rows.tokens
    assert store is not None
    parts = [part for part in (store.codes, store.scales, store.centroids) if part is not None]
    return sum(part.nbytes for part in parts) / len(store.codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    repeats = parser.parse_args().repeats
    threads = os.cpu_count() or 1
    results: dict[str, Any] = {}
    print(f"{'dimension':>9} {'codec':>10} {'bytes':>7} {'ms':>7} {'10^9/s':>7} {'of integer peak':>16}")
    for dimension in BARS:
        generator = np.random.default_rng(0)
        centres = generator.standard_normal((CLUSTERS, dimension)).astype(np.float32)
        documents = texts(generator, centres, DOCUMENTS, TOKENS)
        queries = asked(generator, documents)
        peaks = {"integer": integer_peak(dimension, threads), "float32": float_peak(dimension, threads)}
        results[str(dimension)] = {"peaks_giga_per_second": peaks, "bar_ms": BARS[dimension], "codecs": {}}
        for codec in CODECS:
            with tempfile.TemporaryDirectory() as folder:
                collection = built(Path(folder), codec, documents)
                times = timed(collection, queries, repeats)
                size = token_bytes(collection)
            rate = QUERY_TOKENS * CANDIDATES * TOKENS * dimension / np.median(times) / 1e6
            share = rate / peaks["integer"]
            results[str(dimension)]["codecs"][codec] = {
                "bytes_per_token": size,
                "median_ms": float(np.median(times)),
                "slowest_ms": float(times.max()),
                "giga_per_second": float(rate),
                "share_of_integer_peak": float(share),
            }
            median = float(np.median(times))
            print(f"{dimension:>9} {codec:>10} {size:>7.1f} {median:>7.2f} {rate:>7.1f} {share:>16.2f}")
        print(f"{'':>9} peaks: {peaks['integer']:.0f} integer, {peaks['float32']:.0f} float32")
    record = {
        "query_tokens": QUERY_TOKENS,
        "candidates": CANDIDATES,
        "tokens": TOKENS,
        "results": results,
    }
    write("late", dated(record))


if __name__ == "__main__":
    main()
