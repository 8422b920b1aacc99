"""How long does a three-way search take among a million documents, and among a tenth of them?

Documents are made from real ones, so that their statistics are real, too: of English passages, encoded by the
embedded checkpoint, each takes two. Its dense vector lies between theirs, with noise; its 100 terms and their
weights are drawn from the two and a third, so terms are as common as in real texts; its 60 token vectors are
some of theirs, with noise. Queries are the first words of passages that no document was made from, encoded
before anything is timed.

Settings are the defaults: candidates, weights, dense kind by size, one bit a value for token vectors. Each
collection is searched in one process with as many threads as there are cores, warm. How much of the ten best
of all documents, by the sum of all three scores, a search finds is measured on a few queries; nDCG@10 on real
collections is the business of quality.py and token_codecs.py.

Figures of other numbers of documents, measured before, stay in the results.

Run: python -m benchmarks.scale [--documents 100000 1000000] [--folder FOLDER]   (FOLDER keeps what was built)
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import DATA, ROOT, dated, earlier, write
from tercet.evaluation.rankings import ranking
from tercet.index.candidates import Document, Weights
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.index.snapshot import Snapshot
from tercet.index.token_codecs import RESIDUAL_BITS
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.ingest.target import settings_for
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import (
    Float32,
    Int64,
    Representations,
    SparseRows,
    TokenVectors,
    offsets_of,
)

PASSAGES = DATA / "scale-mix" / "corpus.jsonl.gz"
SAMPLE, QUERIES, QUERY_WORDS, CHECKED = 20_000, 200, 12, 10
TERMS, TOKENS, BATCH = 100, 60, 5_000
DENSE_NOISE, TOKEN_NOISE = 0.4, 0.3  # lengths, beside vectors of length 1
REPEATS, WARM_UP = 3, 2
BARS = {"median_ms": 5.0, "p99_ms": 12.0, "times_for_ten_times_as_many": 3.0}
"""Of 1,000,000 documents; more may take 25 ms."""


def passages() -> tuple[list[str], list[str]]:
    """English passages: those that documents are made from, and the first words of others."""
    with gzip.open(PASSAGES, "rt", encoding="utf-8") as lines:
        texts = [each["text"] for each in map(json.loads, lines) if each["lang"] == "en"]
    chosen = np.random.default_rng(0).permutation(len(texts))[: SAMPLE + QUERIES]
    drawn = [texts[place] for place in chosen.tolist()]
    return drawn[:SAMPLE], [" ".join(text.split()[:QUERY_WORDS]) for text in drawn[SAMPLE:]]


class Corpus:
    """Any number of documents made from encoded passages; the same at every call."""

    def __init__(self, real: Representations) -> None:
        assert real.dense is not None
        assert real.sparse is not None
        assert real.colbert is not None
        self._dense, self._sparse, self._tokens = real.dense, real.sparse, real.colbert

    def batch(self, first: int, last: int) -> tuple[list[Document], Representations]:
        """The documents from `first` up to `last`."""
        generator = np.random.default_rng(first)
        count = last - first
        parents = generator.integers(0, len(self._dense), (count, 3))
        return (
            [Document(f"d{number:08}", f"document {number}") for number in range(first, last)],
            Representations(
                np.full(count, TOKENS + 1),
                np.zeros(count, np.bool_),
                self._dense_of(generator, parents),
                mixed_terms(self._sparse, generator, parents),
                self._tokens_of(generator, parents),
            ),
        )

    def _dense_of(self, generator: np.random.Generator, parents: Int64) -> Float32:
        share = generator.uniform(0.6, 1, (len(parents), 1)).astype(np.float32)
        mixed = share * self._dense[parents[:, 0]] + (1 - share) * self._dense[parents[:, 1]]
        return noisy(generator, mixed, DENSE_NOISE)

    def _tokens_of(self, generator: np.random.Generator, parents: Int64) -> TokenVectors:
        parent = np.where(generator.random((len(parents), TOKENS)) < 0.7, parents[:, :1], parents[:, 1:2])
        starts, lengths = self._tokens.offsets[parent], np.diff(self._tokens.offsets)[parent]
        places = starts + (generator.random(parent.shape) * lengths).astype(np.int64)
        vectors = noisy(generator, self._tokens.vectors[places.reshape(-1)], TOKEN_NOISE)
        return TokenVectors(vectors, TOKENS * np.arange(len(parents) + 1))


def mixed_terms(real: SparseRows, generator: np.random.Generator, parents: Int64) -> SparseRows:
    """The distinct terms of three passages int64[N, 3] each, in random order, up to 100 of them."""
    rows = real.take(parents.reshape(-1))
    part = np.repeat(np.arange(parents.size), np.diff(rows.indptr))
    # By document, term and passage, in one number, as sorting by three takes five times as long.
    order = np.argsort(part // 3 << 34 | rows.token_ids.astype(np.int64) << 2 | part % 3)
    owner, ids, weights = part[order] // 3, rows.token_ids[order], rows.weights[order]
    new = np.ones(len(ids), np.bool_)
    new[1:] = (owner[1:] != owner[:-1]) | (ids[1:] != ids[:-1])
    owner, ids, weights = owner[new], ids[new], weights[new]
    shuffled = np.argsort(owner + generator.random(len(ids)))
    rank = np.arange(len(ids)) - np.searchsorted(owner, np.arange(len(parents)))[owner]
    kept = np.sort(shuffled[rank < TERMS])
    counts = np.bincount(owner[kept], minlength=len(parents))
    return SparseRows(offsets_of(counts), ids[kept], weights[kept])


def noisy(generator: np.random.Generator, vectors: Float32, length: float) -> Float32:
    """Vectors of length 1 near float32[N, C]."""
    noise = generator.standard_normal(vectors.shape, np.float32) * np.float32(
        length / vectors.shape[1] ** 0.5
    )
    found = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) + noise
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found, np.float32)


def batches(documents: int) -> Iterator[tuple[int, int]]:
    return ((first, min(first + BATCH, documents)) for first in range(0, documents, BATCH))


def built(
    root: Path, encoder: Encoder, real: Representations, documents: int
) -> tuple[Collection, float | None]:
    """The collection of so many documents, and the seconds that it took unless it was there."""
    name = f"scale-{documents}"
    try:
        return Collection.open(root, name), None
    except CollectionNotFoundError:
        pass
    assert real.colbert is not None
    codebook = train_codebook(real.colbert.vectors, RESIDUAL_BITS["residual1"])
    settings = settings_for(name, encoder.info, {"token_codec": "residual1", "codebook": codebook})
    collection, corpus, started = Collection.create(root, name, settings), Corpus(real), time.monotonic()
    with collection.writer() as writer, ThreadPoolExecutor(1) as ahead:
        places = list(batches(documents))
        made = ahead.submit(corpus.batch, *places[0])
        for (_, last), following in zip_longest(places, places[1:]):
            batch = made.result()
            if following is not None:
                made = ahead.submit(corpus.batch, *following)
            writer.add(*batch)
            if last % 100_000 == 0:
                print(f"  {last:,} documents, {time.monotonic() - started:.0f} s", flush=True)
        writer.publish()
    return collection, time.monotonic() - started


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def timed(snapshot: Snapshot, queries: Representations) -> dict[str, float]:
    """Milliseconds of searches, without encoding, the fastest of some each; and of both of their steps."""
    rows = [queries.take(np.array([row])) for row in range(len(queries))]
    for _ in range(WARM_UP):
        for query in rows:
            snapshot.search(query)
    times, steps = np.full(len(rows), np.inf), np.zeros((len(rows), 2))
    for _ in range(REPEATS):
        for row, query in enumerate(rows):
            started = time.perf_counter()
            found = snapshot.search(query)
            seconds = time.perf_counter() - started
            if seconds < times[row]:
                times[row], steps[row] = seconds, (found.retrieve_seconds, found.score_seconds)
    return {
        "median_ms": 1000 * float(np.median(times)),
        "p99_ms": 1000 * float(np.quantile(times, 0.99)),
        "retrieve_median_ms": 1000 * float(np.median(steps[:, 0])),
        "score_median_ms": 1000 * float(np.median(steps[:, 1])),
    }


def found_of_best(snapshot: Snapshot, queries: Representations) -> float:
    """The share of the ten best of all documents that searches find."""
    found = 0
    for row in range(CHECKED):
        query = queries.take(np.array([row]))
        ids, scores = snapshot.score_all(query)
        hits = {hit.document.id for hit in snapshot.search(query, contents=False).hits}
        found += len(hits & set(ranking(ids, scores, Weights(), depth=10)))
    return found / (10 * CHECKED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
    texts, asked = passages()
    real = encode(encoder, texts, "document")
    queries = encode(encoder, asked, "query")
    results: dict[str, Any] = earlier("scale").get("documents", {})
    columns = (("documents", 10), ("built s", 8), ("GB", 6), ("median", 7), ("p99", 7), ("retrieve", 9))
    print(*(f"{name:>{width}}" for name, width in (*columns, ("score", 7), ("found", 6))))
    with tempfile.TemporaryDirectory() as scratch:
        root = arguments.folder or Path(scratch)
        for documents in arguments.documents:
            collection, seconds = built(root, encoder, real, documents)
            seconds = seconds or results.get(str(documents), {}).get("build_seconds")
            snapshot = collection.snapshot()
            figures = timed(snapshot, queries)
            size = size_of(root / f"scale-{documents}") / 1e9
            share = found_of_best(snapshot, queries)
            results[str(documents)] = dated(
                {**figures, "build_seconds": seconds, "gigabytes": size, "found": share}
            )
            print(
                f"{documents:>10,} {seconds or 0:>8.0f} {size:>6.2f} {figures['median_ms']:>7.2f} "
                f"{figures['p99_ms']:>7.2f} {figures['retrieve_median_ms']:>9.2f} "
                f"{figures['score_median_ms']:>7.2f} {share:>6.3f}",
                flush=True,
            )
    record = {
        "bars": BARS,
        "times_for_ten_times_as_many": {
            documents: results[documents]["median_ms"] / results[tenth]["median_ms"]
            for documents in results
            if (tenth := str(int(documents) // 10)) in results
        },
        "documents": dict(sorted(results.items(), key=lambda item: int(item[0]))),
    }
    write("scale", dated(record))


if __name__ == "__main__":
    main()
