"""How fast is a search beside Milvus Lite, LanceDB and Qdrant's local mode, and what does each find?

The documents are those of scale.py, without their token vectors, which no peer takes in such numbers; all
systems get the same vectors. Kinds of search are the dense side alone and, where a system has lexical
weights, both sides, 200 candidates of each. Ours are whole searches with default settings and the weights
1, 0, 0 and 1, 1, 0. Recall is of the ten documents with the highest exact dense score or sum. Each peer runs
in a process of its own environment, one after the other. Milliseconds are those of one client, the fastest of
three runs; queries a second are answered to as many clients as there are cores, threads of that process.
Ours are measured before and after each peer, and it is compared with the mean. LanceDB's graphs are asked
with an effort of 200 and score 40 rows again; `dense, like effort` is our search with as much.

Run: python -m benchmarks.search_peers PYTHON_OF_MILVUS_LITE PYTHON_OF_QDRANT_CLIENT PYTHON_OF_LANCEDB
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import scale
from benchmarks.peers.asked import CLIENTS, TOP, measured
from benchmarks.recording import ROOT, dated, peer_figures, write
from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.collection import Collection
from tercet.index.fusion import weighted_sum
from tercet.index.snapshot import Snapshot
from tercet.ingest.target import settings_for
from tercet.models.checkpoint import SHIPPED
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32, Output, Representations

QUERIES = 50
SUMS = {"dense": Weights(1, 0, 0), "dense and lexical": Weights(1, 1, 0)}
LIKE_EFFORT = "dense, like effort"
LIKE_OPTIONS: Any = {"candidates": CandidateLimits(dense=40), "dense_options": DenseOptions(ef_search=200)}
SIDES: tuple[Output, ...] = ("dense", "sparse")
TIMES_A_PEER = 8.0

Figures = dict[str, Any]


def written(file: Path, texts: Representations) -> None:
    """What peers read."""
    assert texts.dense is not None
    assert texts.sparse is not None
    sparse = texts.sparse
    np.savez(
        file, dense=texts.dense, indptr=sparse.indptr, token_ids=sparse.token_ids, weights=sparse.weights
    )


def tercet(folder: Path, encoder: Encoder, corpus: scale.Corpus, documents: int) -> tuple[Snapshot, float]:
    """A collection with default settings but for the token vectors, and the seconds of building."""
    settings = settings_for("ours", encoder.info, {"token_codec": "none"})
    collection, spent = Collection.create(folder, "ours", settings), 0.0
    with collection.writer() as writer:
        for first, last in scale.batches(documents):
            batch = corpus.batch(first, last)
            started = time.perf_counter()
            writer.add(batch[0], batch[1].keep(SIDES))
            spent += time.perf_counter() - started
        started = time.perf_counter()
        writer.publish()
    return collection.snapshot(), spent + time.perf_counter() - started


def searched(snapshot: Snapshot, queries: Representations) -> Figures:
    """As a peer's script has it."""
    rows = [queries.take(np.array([place])) for place in range(len(queries))]

    def search(weights: Weights, options: Any, place: int) -> list[int]:
        result = snapshot.search(rows[place], weights=weights, **options)
        return [int(hit.document.id[1:]) for hit in result.hits]

    kinds: dict[str, tuple[Weights, Any]] = {name: (weights, {}) for name, weights in SUMS.items()}
    kinds[LIKE_EFFORT] = SUMS["dense"], LIKE_OPTIONS
    return {name: measured(partial(search, *kind), len(rows)) for name, kind in kinds.items()}


def peer(python: str, script: str, work: Path) -> Figures:
    folder = work / script
    folder.mkdir()
    figures: Figures = peer_figures(python, script, work / "documents.npz", work / "queries.npz", folder)
    return figures


def exact(snapshot: Snapshot, query: Representations) -> dict[str, Float32]:
    """Of each kind of search the score of every document, by number."""
    ids, scores = snapshot.score_all(query)
    order = np.argsort([int(name[1:]) for name in ids])
    return {
        name: weighted_sum(scores[order].astype(np.float64), weights).astype(np.float32)
        for name, weights in SUMS.items()
    }


def recall(scores: Sequence[Float32], found: Sequence[Sequence[int]]) -> float:
    """The mean share of the best that is found; what scores as much as the last of them counts."""
    shares = []
    for every, some in zip(scores, found, strict=True):
        last = np.partition(every, len(every) - TOP)[len(every) - TOP]
        shares.append(np.count_nonzero(every[list(some)] >= last * (1 - 1e-6)) / TOP)
    return float(np.mean(shares))


def times(ours: Sequence[Figures], kind: str, rate: float) -> float:
    """How many times a peer's rate ours is, as it was before and after."""
    return round(float(np.mean([run[kind]["queries_a_second"] for run in ours])) / rate, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("milvus", metavar="PYTHON_OF_MILVUS_LITE")
    parser.add_argument("qdrant", metavar="PYTHON_OF_QDRANT_CLIENT")
    parser.add_argument("lancedb", metavar="PYTHON_OF_LANCEDB")
    parser.add_argument("--documents", type=int, default=100_000)
    asked = parser.parse_args()
    encoder = load_encoder(str(ROOT / "checkpoints" / SHIPPED[0]))
    texts, words = scale.passages()
    corpus = scale.Corpus(encode(encoder, texts, "document"))
    queries = encode(encoder, words[:QUERIES], "query", SIDES)
    with tempfile.TemporaryDirectory(prefix="tercet-peers-") as name:
        work = Path(name)
        written(work / "queries.npz", queries)
        batches = [corpus.batch(*each)[1].keep(SIDES) for each in scale.batches(asked.documents)]
        written(work / "documents.npz", Representations.concatenate(batches))
        snapshot, seconds = tercet(work, encoder, corpus, asked.documents)
        rows = [exact(snapshot, queries.take(np.array([place]))) for place in range(len(queries))]
        ours = [searched(snapshot, queries)]
        runs = {"Tercet": {"build_seconds": seconds, **ours[0]}}
        for system, python, script in (
            ("Milvus Lite", asked.milvus, "milvus_search.py"),
            ("LanceDB", asked.lancedb, "lancedb_search.py"),
            ("Qdrant, local mode", asked.qdrant, "qdrant_search.py"),
        ):
            runs[system] = peer(python, script, work)
            ours.append(searched(snapshot, queries))
    systems: Figures = {}
    for number, (system, run) in enumerate(runs.items()):
        around = ours[max(0, number - 1) : number + 1]
        systems[system] = {"build_seconds": round(run.pop("build_seconds"), 1)}
        for kind, each in run.items():
            rate = each["queries_a_second"]
            own = kind if kind in SUMS else "dense"
            found = recall([every[own] for every in rows], each["found"])
            line = systems[system][kind] = {
                "queries_a_second": round(rate, 1),
                "median_ms": round(float(np.median(each["milliseconds"])), 3),
                f"recall@{TOP}": round(found, 4),
            }
            if system != "Tercet":
                line["ours_to_theirs"] = times(around, own, rate)
                if own == "dense":
                    line["like_effort_to_theirs"] = times(around, LIKE_EFFORT, rate)
            print(
                f"{system:>18} {kind:>18}", *(f"{name} {value}" for name, value in line.items()), flush=True
            )
    record = {
        "documents": asked.documents,
        "queries": QUERIES,
        "clients": CLIENTS,
        "bar": {"ours_to_theirs": TIMES_A_PEER},
        "systems": systems,
    }
    write("search_peers", dated(record))


if __name__ == "__main__":
    main()
