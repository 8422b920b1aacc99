"""How much faster is the inverted index than a naive loop, with the same results?

200,000 and 1,000,000 synthetic documents with Zipf token ids from 250,002 and about 82 postings each; queries
of 12 tokens, which touch 1.2 postings a document; the best 100 documents on one thread. The naive loop is
term at a time in Numba over float32 postings into float32 accumulators of all documents. Its top-k is taken
in two ways: by sorting all accumulators (`sort`), and by NumPy's vectorized argpartition (`partition`), which
is the best that a few lines can do. The three run all queries in turn, several times, so that noise on the
machine meets them alike.

How much of the postings is left unread where weights are learned? Synthetic weights are equally large for
rare and for common terms, so nothing can be skipped there. So documents are made of 4,000 real passages as
scale.py makes them, in segments of 250,000, and queries are the first words of others, with the collection's
idf: the best 200 on one thread, in processor time, by reading everything and by skipping, in turn, with equal
results. Impacts of a column are read of all documents of its block, and count.

Figures of other numbers of documents, measured before, stay in the results.

Run: python -m benchmarks.sparse [--documents 200000 1000000] [--learned 100000 1000000] [--folder FOLDER]
(FOLDER keeps the made documents)
"""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.recording import ROOT, dated, earlier, write
from benchmarks.scale import mixed_terms, passages
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.search import lexical_search
from tercet.index.search.lexical_search import LexicalSearch
from tercet.index.sparse.document_frequencies import document_frequencies
from tercet.index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from tercet.index.sparse.idf import inverse_document_frequencies
from tercet.index.sparse.inverted_index import InvertedIndex, build_inverted
from tercet.index.sparse.query import LexicalQuery
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Float64, Int64, SparseRows

DOCUMENTS, VOCABULARY, TOKENS, QUERY_TERMS, QUERIES, TOP = 200_000, 250_002, 92, 12, 300, 100
PASSES = 3
SPEEDUP_BAR, POSTING_BAR_NS = 20, 0.8
SAMPLE, ASKED, WORD_PIECES, CANDIDATES = 4_000, 100, 30_522, 200
SEGMENT, BATCH, ENCODED_AT_ONCE = 250_000, 5_000, 500
FEWER_BAR, FEWER_AMONG = 5.0, 10_000_000  # documents at least
SLOWER_BAR = 1.05  # asked of all sizes; least is skipped among few documents

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


def encoded(folder: Path) -> tuple[SparseRows, list[Query]]:
    """The lexical rows of the passages that documents are made from, and queries; kept in the folder."""
    kept = folder / "encoded.npz"
    if not kept.exists():
        encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
        texts, asked = passages()
        parts = []
        for first in range(0, SAMPLE, ENCODED_AT_ONCE):
            some = encode(encoder, texts[:SAMPLE][first : first + ENCODED_AT_ONCE], "document", ("sparse",))
            assert some.sparse is not None
            parts.append(some.sparse)
        queries = encode(encoder, asked[:ASKED], "query", ("sparse",)).sparse
        assert queries is not None
        both = {"passages": SparseRows.concatenate(parts), "queries": queries}
        arrays = {
            f"{name}_{array}": getattr(rows, array)
            for name, rows in both.items()
            for array in ("indptr", "token_ids", "weights")
        }
        np.savez(kept, **arrays)
    with np.load(kept) as arrays:
        real, queries = (
            SparseRows(*(arrays[f"{name}_{array}"] for array in ("indptr", "token_ids", "weights")))
            for name in ("passages", "queries")
        )
    return real, [queries.row(row) for row in range(len(queries))]


def made_segments(folder: Path, real: SparseRows, documents: int) -> list[tuple[SparseRows, InvertedIndex]]:
    """So many documents, in segments that are there already or are built."""
    segments = []
    for first in range(0, documents, SEGMENT):
        last = min(first + SEGMENT, documents)
        arrays = ArrayFolder(folder / f"{first}-{last}")
        if not arrays.folder.exists():
            arrays = ArrayFolder(folder / "partial")
            shutil.rmtree(arrays.folder, ignore_errors=True)  # what an interrupted run left
            arrays.folder.mkdir()
            writer = ForwardRowsWriter(arrays)
            for start in range(first, last, BATCH):
                generator = np.random.default_rng(start)
                count = min(BATCH, last - start)
                writer.append(mixed_terms(real, generator, generator.integers(0, len(real), (count, 3))))
            writer.finish()
            build_inverted(open_forward_rows(arrays, last - first), WORD_PIECES, arrays)
            arrays = ArrayFolder(arrays.folder.rename(folder / f"{first}-{last}"))
        forward = open_forward_rows(arrays, last - first)
        segments.append((forward, InvertedIndex.open(arrays, forward)))
    return segments


def idf_factors(rows: SparseRows) -> tuple[Int64, Float64]:
    """How many of the documents have each term, and the factors idf(t) / m of `index/sparse/idf.py`."""
    frequencies = document_frequencies(rows.token_ids, WORD_PIECES)
    masses = np.bincount(rows.token_ids, rows.weights, WORD_PIECES)
    idf = inverse_document_frequencies(len(rows), frequencies)
    return frequencies, idf * (masses.sum() / (masses @ idf))


def measured_learned(folder: Path, documents: int) -> dict[str, Any]:
    """The figures of so many documents with learned weights, which are printed, too."""
    real, asked = encoded(folder)
    segments = made_segments(folder, real, documents)
    indexes = [index for _, index in segments]
    frequencies, factors = idf_factors(segments[0][0])  # all segments have about the same
    queries = [(ids, (weights * factors[ids]).astype(np.float32)) for ids, weights in asked]
    shares = {"reading": 0.0, "skipping": lexical_search.DEFERRED_SHARE}
    times = {name: np.full(len(queries), np.inf) for name in shares}
    read = {name: np.zeros(len(queries)) for name in shares}
    for turn in range(2 * PASSES):
        for place, (ids, weights) in enumerate(queries):
            results = []
            for name, share in sorted(shares.items(), reverse=turn % 2 > 0):
                lexical_search.DEFERRED_SHARE = share
                started = time.thread_time()
                query = LexicalQuery.of(ids, weights, len(indexes))
                search = LexicalSearch(indexes, query, CANDIDATES, [None] * len(indexes))
                results.append(search.best([search.find(0, len(indexes))]))
                times[name][place] = min(times[name][place], time.thread_time() - started)
                read[name][place] = search.impacts_read
            assert all(np.array_equal(*pair) for pair in zip(*results, strict=True)), "results differ"
    lexical_search.DEFERRED_SHARE = shares["skipping"]
    postings = (
        float(np.mean([frequencies[ids].sum() for ids, _ in queries])) * documents / len(segments[0][0])
    )
    record = {
        "queries": len(queries),
        "terms": float(np.mean([len(ids) for ids, _ in queries])),
        "postings_per_query": round(postings),
        "impacts_read": {name: round(float(counts.mean())) for name, counts in read.items()},
        "times_fewer": round(float(read["reading"].mean() / read["skipping"].mean()), 2),
        "median_ms": {name: round(1000 * float(np.median(some)), 3) for name, some in times.items()},
        "p95_ms": {name: round(1000 * float(np.quantile(some, 0.95)), 3) for name, some in times.items()},
    }
    print(f"{documents:,} documents, mixtures of {len(real):,} passages:", record, flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="*", default=[DOCUMENTS, 5 * DOCUMENTS])
    parser.add_argument("--learned", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    sizes = arguments.documents
    results = earlier("sparse").get("documents", {})
    results |= {str(documents): dated(measured(documents)) for documents in sizes}
    learned = earlier("sparse").get("learned", {})
    with tempfile.TemporaryDirectory(prefix="tercet-sparse-") as scratch:
        for documents in arguments.learned:
            folder = arguments.folder or Path(scratch)
            learned[str(documents)] = dated(measured_learned(folder, documents))
    record = {
        "bars": {
            "speedup_sort": SPEEDUP_BAR,
            "ns_per_posting": POSTING_BAR_NS,
            "times_fewer_at_10_million": FEWER_BAR,
            "slower_at_100_000": SLOWER_BAR,
        },
        "top": TOP,
        "documents": dict(sorted(results.items(), key=lambda each: int(each[0]))),
        "learned": dict(sorted(learned.items(), key=lambda each: int(each[0]))),
    }
    write("sparse", dated(record))
    for documents in map(str, sizes):
        found = results[documents]
        assert found["speedup"]["sort"] >= SPEEDUP_BAR, f"less than {SPEEDUP_BAR} times faster"
        assert found["ns_per_posting"] <= POSTING_BAR_NS, f"more than {POSTING_BAR_NS} ns a posting"
    for documents in arguments.learned:
        found = learned[str(documents)]
        slower = found["median_ms"]["skipping"] / found["median_ms"]["reading"]
        assert slower <= SLOWER_BAR, f"skipping takes {slower:.2f} times as long among {documents:,}"
        if documents >= FEWER_AMONG:
            assert found["times_fewer"] >= FEWER_BAR, f"less than {FEWER_BAR} times fewer impacts"


if __name__ == "__main__":
    main()
