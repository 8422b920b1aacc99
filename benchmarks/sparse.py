"""How much faster is the inverted index than a naive loop, with the same results?

200,000 and 1,000,000 synthetic documents with Zipf token ids from 250,002 and about 82 postings each; queries
of 12 tokens, which touch 1.2 postings a document; the best 100 documents on one thread. The naive loop is
term at a time in Numba over float32 postings into float32 accumulators of all documents. Its top-k is taken
in two ways: by sorting all accumulators (`sort`), and by NumPy's vectorized argpartition (`partition`), which
is the best that a few lines can do. The three run all queries in turn, several times, so that noise on the
machine meets them alike.

Figures of other numbers of documents, measured before, stay in the results.

Run: python -m benchmarks.sparse [--documents 200000 1000000]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recording import dated, earlier, write
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.search.lexical_search import LexicalSearch
from tercet.index.sparse.inverted_index import InvertedIndex, build_inverted
from tercet.index.sparse.query import LexicalQuery
from tercet.models.representations import SparseRows

DOCUMENTS, VOCABULARY, TOKENS, QUERY_TERMS, QUERIES, TOP = 200_000, 250_002, 92, 12, 300, 100
PASSES = 3
SPEEDUP_BAR, POSTING_BAR_NS = 20, 0.8

Array = npt.NDArray[np.generic]
Query = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


def best_rows(
    index: InvertedIndex, token_ids: npt.NDArray[np.int32], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """The best documents of a query, and all that tie with the last."""
    search = LexicalSearch([index], LexicalQuery.of(token_ids, weights, 1), TOP, [None])
    return search.best([search.find(0, 1)])[1]


def collection(
    generator: np.random.Generator, documents: int = DOCUMENTS, vocabulary: int = VOCABULARY
) -> tuple[SparseRows, list[Query]]:
    """Documents and queries whose tokens follow one Zipf law; weights are gamma distributed."""
    shares = 1 / (np.arange(vocabulary) + 2.7)
    edges = np.cumsum(shares / shares.sum())

    def draw(count: int) -> npt.NDArray[np.int64]:
        return np.minimum(np.searchsorted(edges, generator.random(count)), vocabulary - 1)

    lengths = np.maximum(generator.normal(TOKENS, TOKENS / 3, documents).astype(np.int64), 8)
    keys = np.unique(np.repeat(np.arange(documents), lengths) * vocabulary + draw(int(lengths.sum())))
    indptr = np.searchsorted(keys, np.arange(documents + 1) * vocabulary)
    weights = generator.gamma(4, 0.03, len(keys)).astype(np.float32)
    queries = []
    for _ in range(QUERIES):
        tokens = np.sort(generator.permutation(np.unique(draw(8 * QUERY_TERMS)))[:QUERY_TERMS])
        queries.append((tokens.astype(np.int32), generator.gamma(4, 0.03, len(tokens)).astype(np.float32)))
    return SparseRows(indptr, (keys % vocabulary).astype(np.int32), weights), queries


def _accumulate(
    starts: Array, documents: Array, weights: Array, token_ids: Array, query_weights: Array, sums: Array
) -> None:
    for place in range(len(token_ids)):
        weight = query_weights[place]
        for position in range(starts[token_ids[place]], starts[token_ids[place] + 1]):
            sums[documents[position]] += weight * weights[position]


def naive_search(rows: SparseRows) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """The naive search over float postings, by sorting and by partition; each gives the best documents."""
    from numba import njit  # of the extra `bench`, which those that take this collection alone do without

    accumulate: Any = njit(nogil=True)(_accumulate)
    order = np.argsort(rows.token_ids, kind="stable")
    documents = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(rows.indptr))[order]
    weights = rows.weights[order]
    starts = np.searchsorted(rows.token_ids[order], np.arange(VOCABULARY + 1))

    def sums_of(token_ids: Array, query_weights: Array) -> npt.NDArray[np.float32]:
        sums = np.zeros(len(rows), np.float32)
        accumulate(starts, documents, weights, token_ids, query_weights, sums)
        return sums

    def by_sorting(token_ids: Array, query_weights: Array) -> Array:
        return np.argsort(-sums_of(token_ids, query_weights))[:TOP]

    def by_partition(token_ids: Array, query_weights: Array) -> Array:
        sums = sums_of(token_ids, query_weights)
        top = np.argpartition(sums, len(rows) - TOP)[-TOP:]
        return top[np.argsort(-sums[top])]

    return by_sorting, by_partition


def exact_top10(rows: SparseRows, found: Array, query: Query) -> list[int]:
    """The ten best of the found documents by exact score, ties by row."""
    scores = []
    for row in found:
        token_ids, weights = rows.row(int(row))
        _, ours, theirs = np.intersect1d(query[0], token_ids, assume_unique=True, return_indices=True)
        scores.append(np.float32(query[1][ours].astype(np.float64) @ weights[theirs].astype(np.float64)))
    return [int(found[place]) for place in np.lexsort((found, -np.array(scores)))[:10]]


def measured(documents: int) -> dict[str, Any]:
    """The figures of so many documents, which are printed, too."""
    rows, queries = collection(np.random.default_rng(0), documents)
    by_sorting, by_partition = naive_search(rows)
    with tempfile.TemporaryDirectory(prefix="tercet-sparse-") as name:
        folder = Path(name)
        started = time.perf_counter()
        build_inverted(rows, VOCABULARY, ArrayFolder(folder))
        build_seconds = time.perf_counter() - started
        index_bytes = sum(path.stat().st_size for path in folder.iterdir())
        index = InvertedIndex.open(ArrayFolder(folder), rows)
        searches: dict[str, Callable[..., Array]] = {
            "sort": by_sorting,
            "partition": by_partition,
            "tercet": lambda token_ids, weights: best_rows(index, token_ids, weights),
        }
        for query in queries:
            first, *others = (exact_top10(rows, run(*query), query) for run in searches.values())
            assert all(other == first for other in others), "the top 10 differ"
        times: dict[str, list[float]] = {search: [] for search in searches}
        for _ in range(PASSES):
            for search, run in searches.items():
                for query in queries:
                    started = time.perf_counter()
                    run(*query)
                    times[search].append(time.perf_counter() - started)

    milliseconds = {search: float(np.median(values)) * 1e3 for search, values in times.items()}
    frequencies = np.bincount(rows.token_ids, minlength=VOCABULARY)
    touched = float(np.mean([frequencies[tokens].sum() for tokens, _ in queries]))
    record = {
        "load_average": round(os.getloadavg()[0], 1),
        "postings": len(rows.token_ids),
        "postings_per_query": round(touched),
        "build_seconds": round(build_seconds, 2),
        "index_bytes": index_bytes,
        "median_ms": {search: round(value, 3) for search, value in milliseconds.items()},
        "p95_ms": {search: round(float(np.percentile(v, 95)) * 1e3, 3) for search, v in times.items()},
        "speedup": {
            search: round(milliseconds[search] / milliseconds["tercet"], 1)
            for search in ("sort", "partition")
        },
        "ns_per_posting": round(milliseconds["tercet"] * 1e6 / touched, 3),
    }
    print(f"{documents:,} documents, {record['postings']:,} postings, {round(touched):,} a query, top {TOP}")
    print(
        f"built in {build_seconds:.1f} s, {index_bytes / 1e6:.0f} MB; top 10 identical in {QUERIES} queries"
    )
    for search in searches:
        speedup = milliseconds[search] / milliseconds["tercet"]
        print(f"{search:>10} {milliseconds[search]:8.3f} ms at the median   {speedup:6.1f} ×")
    print(f"{record['ns_per_posting']:.2f} ns a posting", flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[DOCUMENTS, 5 * DOCUMENTS])
    sizes = parser.parse_args().documents
    results = earlier("sparse").get("documents", {})
    results |= {str(documents): dated(measured(documents)) for documents in sizes}
    record = {
        "bars": {"speedup_sort": SPEEDUP_BAR, "ns_per_posting": POSTING_BAR_NS},
        "top": TOP,
        "documents": dict(sorted(results.items(), key=lambda each: int(each[0]))),
    }
    write("sparse", dated(record))
    for documents in map(str, sizes):
        found = results[documents]
        assert found["speedup"]["sort"] >= SPEEDUP_BAR, f"less than {SPEEDUP_BAR} times faster"
        assert found["ns_per_posting"] <= POSTING_BAR_NS, f"more than {POSTING_BAR_NS} ns a posting"


if __name__ == "__main__":
    main()
