"""Does a server before Qdrant or Milvus Lite find what our own collection finds, and at which price?

A judged collection is built with the embedded checkpoint, with collection idf and exact dense search, and
exported; it is also written through each engine, some documents at a time. Its queries are then asked of our
own snapshot and of the engine's, in turn, without HTTP. Processor time is of the whole process: Qdrant's
local mode and Milvus Lite run in it, and are plain Python, so the part that is spent in the engine's client
is told beside. Servers of either spend theirs elsewhere.

Run: python -m tests.endurance.peers.backends [FOLDER]   (default: ../shared/data/cranfield, in BEIR's layout)
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import ROOT
from tercet.cluster.backends.collections import EngineCollections
from tercet.cluster.backends.engine import Engine, EngineCollection
from tercet.cluster.backends.milvus.engine import MilvusEngine
from tercet.cluster.backends.qdrant.engine import QdrantEngine
from tercet.cluster.backends.snapshot import EngineSnapshot
from tercet.evaluation.beir import read_dataset
from tercet.index.candidates import CandidateLimits, Document, Hit
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.ingest.target import settings_for
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations
from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.milvus.target import MilvusTarget
from tercet.transfer.push import Target, export
from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.qdrant.target import QdrantTarget

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
NAME = "docs"
PUT = 100
QUERIES = 50
TOP = 10
CANDIDATES = (200, 50)


class Watched:
    """A collection of an engine that tells how much processor time was spent asking it."""

    def __init__(self, collection: EngineCollection) -> None:
        self._collection = collection
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._collection, name)
        if name not in ("propose", "rows", "late"):
            return found

        def asked(*args: Any, **options: Any) -> Any:
            started = time.process_time()
            try:
                answer = found(*args, **options)
                return [*answer] if name == "rows" else answer
            finally:
                self.seconds += time.process_time() - started

        return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CRANFIELD)
    folder: Path = parser.parse_args().folder
    if not folder.is_dir():
        sys.exit(f"{folder}: no judged collection is there; give one in BEIR's layout")
    encoder, dataset = load_encoder("minilm-m3"), read_dataset(folder)
    texts = list(dataset.corpus)
    documents = encode(encoder, [document.encoded_text for document in texts])
    queries = [encode(encoder, [text], "query") for text in list(dataset.queries.values())[:QUERIES]]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tercet-backends-") as work:
        own = written(Path(work), encoder, texts, documents)
        for engine in ("qdrant_local", "milvus_lite"):
            figures[engine] = compared(own, opened(engine, Path(work), own), queries)
            there = empty(engine, Path(work))
            put = put_through(there, own.settings, texts, documents)
            figures[f"{engine}_written"] = put | compared(own, there, queries)
            print(json.dumps(figures, indent=2), flush=True)
    others = [
        f"{engine}: {found['answers_equal_to_the_last_digit']} of {len(queries)} answers are ours"
        for engine, each in figures.items()
        for part, found in each.items()
        if part.startswith("candidates") and found["answers_equal_to_the_last_digit"] != len(queries)
    ]
    if others:
        sys.exit("; ".join(others))


def written(
    root: Path, encoder: Encoder, documents: Sequence[Document], encoded: Representations
) -> Snapshot:
    """A collection with exact dense search and idf."""
    collection = Collection.create(
        root, NAME, settings_for(NAME, encoder.info, {"lexical": "idf", "dense_kind": "flat"})
    )
    with collection.writer() as writer:
        writer.add(documents, encoded)
        writer.publish()
    return collection.snapshot()


def opened(engine: str, work: Path, own: Snapshot) -> Engine:
    """The engine with the documents of a snapshot."""
    target: Target
    settings = own.undivided().settings
    if engine == "qdrant_local":
        place = QdrantPlace(path=str(work / "qdrant"))
        target = QdrantTarget(place, NAME, settings, 100)
        export(own, target)
        return QdrantEngine(place)
    where = MilvusPlace(str(work / "milvus.db"))
    target = MilvusTarget(where, NAME, settings, 100)
    export(own, target)
    return MilvusEngine(where)


def empty(engine: str, work: Path) -> Engine:
    """The engine without any documents."""
    if engine == "qdrant_local":
        return QdrantEngine(QdrantPlace(path=str(work / "points")))
    return MilvusEngine(MilvusPlace(str(work / "rows.db")))


def put_through(
    engine: Engine, settings: CollectionSettings, texts: Sequence[Document], encoded: Representations
) -> dict[str, Any]:
    """Writes all documents; returns how long that took, and what the engine keeps of a token."""
    collections = EngineCollections(engine)
    collections.create(NAME, settings)
    started, rows = time.perf_counter(), 0
    with collections.writing(NAME) as live:
        for first in range(0, len(texts), PUT):
            some = np.arange(first, min(first + PUT, len(texts)))
            live.put(texts[first : first + PUT], encoded.take(some))
        seconds = time.perf_counter() - started
        for part in live.snapshot()._collection.rows(live.snapshot()._collection.keys_of([texts[0].id])):
            assert part.tokens is not None
            rows = part.tokens.codes.nbytes + (0 if part.tokens.scales is None else part.tokens.scales.nbytes)
            rows //= len(part.tokens.codes)
    return {"documents_written_a_second": round(len(texts) / seconds, 1), "bytes_a_token": rows}


def compared(own: Snapshot, engine: Engine, queries: Sequence[Representations]) -> dict[str, Any]:
    """How many answers are ours, and the processor time of a search on both sides."""
    started = time.process_time()
    there = EngineCollections(engine).snapshot(NAME)
    found: dict[str, Any] = {"opening_processor_seconds": round(time.process_time() - started, 2)}
    for candidates in CANDIDATES:
        found[f"candidates_{candidates}"] = asked(own, there, queries, candidates)
    engine.close()
    return found


def asked(
    own: Snapshot, there: EngineSnapshot, queries: Sequence[Representations], candidates: int
) -> dict[str, Any]:
    limits = CandidateLimits(candidates, candidates)
    watched = Watched(there._collection)
    there._collection = watched
    times: list[tuple[float, float, float]] = []
    equal, shares = 0, []
    for query in queries:
        began = time.process_time()
        wanted = SnapshotQuery(query, candidates=limits, top_k=TOP)
        ours = own.answer(wanted).hits
        between, watched.seconds = time.process_time(), 0.0
        hits = there.answer(wanted).hits
        times.append((between - began, time.process_time() - between, watched.seconds))
        equal += hits == ours
        shares.append(len(ids(hits) & ids(ours)) / len(ours))
    there._collection = watched._collection
    ours_ms, total_ms, engine_ms = np.round(1000 * np.median(times, axis=0), 2).tolist()
    return {
        "answers_equal_to_the_last_digit": equal,
        "share_of_the_top_10": round(float(np.mean(shares)), 4),
        "own_search_processor_ms": ours_ms,
        "search_processor_ms": total_ms,
        "of_which_engine_and_client_ms": engine_ms,
    }


def ids(hits: Sequence[Hit]) -> set[str]:
    """Of their documents."""
    return {hit.document.id for hit in hits}


if __name__ == "__main__":
    main()
