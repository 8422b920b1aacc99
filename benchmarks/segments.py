"""What does it cost that documents lie in many segments, and does it show in the hits?

100,000 synthetic documents in 1, 10 and 100 segments: vectors of 384 dimensions in 2,000 clusters with a
decaying spectrum (as in dense.py), about 82 lexical weights under Zipf's law (those of sparse.py), a text of
the same words for BM25, and 16 token vectors of 128 values. Queries are of the same kinds. Each search takes
every division in turn, so that noise on the machine meets them alike: each side alone, and all of them.

Where vectors are scanned, the hits of all divisions have to be the same, with their scores. Through graphs,
recall@200 of the dense side is held against the exact best.

Run: python -m benchmarks.segments [--documents 100000] [--folder FOLDER] [--queries 100]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.dense import CLUSTERS, DIMENSION, points
from benchmarks.recording import dated, write
from benchmarks.sparse import VOCABULARY
from benchmarks.sparse import collection as lexical
from tercet.index.candidates import CandidateLimits, Document, Hit, SearchResult, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import DenseKind
from tercet.index.snapshot import Snapshot
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Representations, SparseRows, TokenVectors

DIVISIONS = (1, 10, 100)
KINDS: tuple[DenseKind, ...] = ("flat", "hnsw")
QUERIES, TOKENS, TOKEN_DIMENSION, QUERY_TOKENS, BATCH, TOP = 100, 16, 128, 8, 5_000, 10
CANDIDATES, PASSES = 200, 5
TIME_BAR, RECALL_BAR = 2.5, 0.005
SIDES: Mapping[str, Weights] = {
    "dense": Weights(1, 0, 0),
    "sparse": Weights(0, 1, 0),
    "bm25": Weights(0, 0, 0, 1),
    "three-way": Weights(1, 1, 1),
    "all with bm25": Weights(1, 1, 1, 1),
}

Matrix = npt.NDArray[np.float32]
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its representations, and the words of BM25."""

    encoded: Representations
    text: str

    def search(self, snapshot: Snapshot, weights: Weights) -> SearchResult:
        """The hits by sides that have a weight; only these propose candidates."""
        limits = CandidateLimits(
            CANDIDATES if weights.dense else 0,
            CANDIDATES if weights.sparse else 0,
            CANDIDATES if weights.bm25 else 0,
        )
        encoded = replace(
            self.encoded,
            dense=self.encoded.dense if weights.dense else None,
            sparse=self.encoded.sparse if weights.sparse else None,
            colbert=self.encoded.colbert if weights.colbert else None,
        )
        text = self.text if weights.bm25 else None
        return snapshot.search(encoded, text=text, top_k=TOP, weights=weights, candidates=limits)


def words(rows: SparseRows, row: int) -> str:
    """A text of a document's words, letters only, so that no stemmer takes one for another."""
    ids = rows.row(row)[0].tolist()
    return " ".join(word(id) for id in ids)


def word(number: int) -> str:
    letters = []
    for _ in range(4):
        number, letter = divmod(number, 26)
        letters.append(chr(ord("a") + letter))
    return "q" + "".join(letters) + "x"


def token_vectors(generator: np.random.Generator, count: int, tokens: int) -> TokenVectors:
    vectors = generator.standard_normal((count * tokens, TOKEN_DIMENSION), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return TokenVectors(vectors, tokens * np.arange(count + 1))


class Corpus:
    """The same documents and queries at every call; those are made as they are asked for."""

    def __init__(self, documents: int) -> None:
        generator = np.random.default_rng(3)
        centres = generator.standard_normal((CLUSTERS, DIMENSION), np.float32)
        rows, asked = lexical(generator, documents)
        self.documents = documents
        self._sparse = rows
        self._dense = points(generator, centres, documents)
        self.queries = [
            Query(
                Representations(
                    np.ones(1, np.int64),
                    np.zeros(1, np.bool_),
                    dense[None],
                    SparseRows(np.array([0, len(ids)]), ids, weights),
                    token_vectors(generator, 1, QUERY_TOKENS),
                ),
                " ".join(word(id) for id in ids.tolist()),
            )
            for dense, (ids, weights) in zip(points(generator, centres, QUERIES), asked, strict=False)
        ]

    def batch(self, first: int) -> tuple[list[Document], Representations]:
        """Some documents, as they are added."""
        last = min(first + BATCH, self.documents)
        count = last - first
        return (
            [Document(f"d{row:07}", words(self._sparse, row)) for row in range(first, last)],
            Representations(
                np.full(count, TOKENS + 1),
                np.zeros(count, np.bool_),
                self._dense[first:last],
                self._sparse.take(np.arange(first, last)),
                token_vectors(np.random.default_rng(first), count, TOKENS),
            ),
        )


def built(folder: Path, corpus: Corpus, kind: DenseKind, division: int) -> Snapshot:
    """The collection of the documents in so many segments, which is made where it is not there."""
    name = f"{kind}-{corpus.documents}-{division}"
    if not (folder / name / "CURRENT").exists():
        settings = CollectionSettings(
            name=name,
            encoder="none",
            fingerprint="0",
            dense_dimension=DIMENSION,
            colbert_dimension=TOKEN_DIMENSION,
            vocabulary_size=VOCABULARY,
            dense_kind=kind,
            token_codec="int8",  # noqa: S106  # a codec of token vectors, no secret
            bm25=True,
        )
        collection = Collection.create(folder, name, settings)
        with collection.writer(SegmentLimits(documents=corpus.documents // division)) as writer:
            for first in range(0, corpus.documents, BATCH):
                writer.add(*corpus.batch(first))
            writer.publish()
    return Collection.open(folder, name).snapshot()


def plain(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.document.id, hit.score) for hit in hits]


def timed(snapshots: Mapping[int, Snapshot], queries: list[Query], weights: Weights) -> Figures:
    """Median milliseconds of a search by division: the fastest of some passes of each query, in turn."""
    times = {division: np.full(len(queries), np.inf) for division in snapshots}
    alike = True
    for number in range(PASSES):
        for place, query in enumerate(queries):
            hits = []
            for division, snapshot in snapshots.items():
                started = time.perf_counter()
                found = query.search(snapshot, weights)
                took = (time.perf_counter() - started) * 1e3
                times[division][place] = min(times[division][place], took)
                hits.append(plain(found.hits))
            alike = alike and (number > 0 or all(other == hits[0] for other in hits))
    medians = {str(division): round(float(np.median(found)), 3) for division, found in times.items()}
    return {
        "median_ms": medians,
        "times_one_segment": {
            division: round(median / medians["1"], 2) for division, median in medians.items()
        },
        "same_hits": alike,
    }


def recalls(snapshots: Mapping[int, Snapshot], exact: Snapshot, queries: list[Query]) -> dict[str, float]:
    """The mean recall@200 of the dense side of each division."""
    limits = CandidateLimits(CANDIDATES, 0, 0)

    def found(snapshot: Snapshot, query: Query) -> set[str]:
        only = replace(query.encoded, sparse=None, colbert=None)
        return set(snapshot.score(only, snapshot.retrieve(only, candidates=limits))[0])

    best = [found(exact, query) for query in queries]
    return {
        str(division): round(
            float(
                np.mean(
                    [
                        len(found(snapshot, query) & wanted) / len(wanted)
                        for query, wanted in zip(queries, best, strict=True)
                    ]
                )
            ),
            4,
        )
        for division, snapshot in snapshots.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where collections are, or are made; else temporary")
    parser.add_argument("--queries", type=int, default=QUERIES)
    arguments = parser.parse_args()
    corpus = Corpus(arguments.documents)
    queries = corpus.queries[: arguments.queries]
    with tempfile.TemporaryDirectory(prefix="tercet-segments-") as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        opened = {
            kind: {division: built(folder, corpus, kind, division) for division in DIVISIONS}
            for kind in KINDS
        }
        found = {}
        for kind, snapshots in opened.items():
            found[kind] = {side: timed(snapshots, queries, weights) for side, weights in SIDES.items()}
            for side, figures in found[kind].items():
                print(
                    f"{kind:>5} {side:>14}",
                    *(f"{ms:8.3f}" for ms in figures["median_ms"].values()),
                    end=" ms  ",
                )
                print(
                    *(f"{ratio:5.2f} x" for ratio in figures["times_one_segment"].values()),
                    figures["same_hits"],
                )
        recall = recalls(opened["hnsw"], opened["flat"][1], queries)
        print(f"recall@{CANDIDATES} through graphs: {recall}")
    record = {
        "load_average": round(os.getloadavg()[0], 1),
        "documents": arguments.documents,
        "queries": len(queries),
        "bars": {"times_one_segment": TIME_BAR, "recall_difference": RECALL_BAR},
        "searches": found,
        f"recall@{CANDIDATES}": recall,
    }
    write("segments", dated(record))


if __name__ == "__main__":
    main()
