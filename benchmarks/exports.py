"""Do Qdrant and Milvus Lite, filled by an export, answer as the collection does? And how fast is the export?

A judged collection is built with the embedded checkpoint, with and without collection idf, and exported to
Qdrant's local mode, Milvus Lite and Parquet. 100 of its queries are then asked there: each side alone, beside
our exact search of all documents, and the three-way sum by the printed script, beside our search with its
usual candidates. The local mode and Milvus Lite compute in float32: where two of our scores differ by no more
than TIE, they may stand in another order, which counts as equal and is reported.

Run: python -m benchmarks.exports [FOLDER]   (default: ../shared/data/cranfield, in BEIR's layout)
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pymilvus import MilvusClient
from qdrant_client import QdrantClient, models

from benchmarks.recording import ROOT, dated, machine, write
from tercet.evaluation.beir import read_dataset
from tercet.index.candidates import Document, Weights
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.ingest.document_encoders import LocalDocuments
from tercet.ingest.ready import build_ready
from tercet.ingest.target import settings_for
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import LexicalKind, Representations
from tercet.transfer.milvus.connection import MilvusPlace
from tercet.transfer.milvus.target import MilvusTarget
from tercet.transfer.parquet.source import ParquetSource
from tercet.transfer.parquet.target import ParquetTarget
from tercet.transfer.push import Target, export
from tercet.transfer.qdrant.connection import QdrantPlace
from tercet.transfer.qdrant.target import QdrantTarget
from tercet.transfer.queries import CollectionQuery

CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
KINDS: tuple[LexicalKind, ...] = ("plain", "idf")
QUERIES = 100
TOP = 10
TIE = 2e-6

Ranked = list[tuple[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=CRANFIELD)
    folder: Path = parser.parse_args().folder
    if not folder.is_dir():
        sys.exit(f"{folder}: no judged collection is there; give one in BEIR's layout")
    before = machine()
    encoder, dataset = load_encoder("minilm-m3"), read_dataset(folder)
    documents = list(dataset.corpus)
    encoded = encode(encoder, [document.encoded_text for document in documents])
    texts = list(dataset.queries.values())[:QUERIES]
    figures: dict[str, Any] = {}
    for kind in KINDS:
        with tempfile.TemporaryDirectory(prefix="tercet-exports-") as work:
            snapshot = written(Path(work), kind, encoder, documents, encoded)
            figures[kind] = compared(Path(work), snapshot, encoder, texts)
            print(json.dumps({kind: figures[kind]}, indent=2), flush=True)
    record = {
        "collection": folder.name,
        "documents": len(documents),
        "queries": len(texts),
        **figures,
    }
    write("exports", dated(record, before))
    different = sum(
        each["other"]
        for kind in KINDS
        for each in figures[kind].values()
        if isinstance(each, dict) and "other" in each
    )
    assert different == 0, f"{different} answers are others"


def written(
    root: Path, kind: LexicalKind, encoder: Encoder, documents: Sequence[Document], encoded: Representations
) -> Snapshot:
    """A collection with exact dense search."""
    collection = Collection.create(
        root, kind, settings_for(kind, encoder.info, {"lexical": kind, "dense_kind": "flat"})
    )
    with collection.writer() as writer:
        writer.add(documents, encoded)
        writer.publish()
    return collection.snapshot()


def compared(work: Path, snapshot: Snapshot, encoder: Encoder, texts: Sequence[str]) -> dict[str, Any]:
    """Rates of the exports, and how many answers of each system are ours."""
    settings = snapshot.undivided().settings
    queries = [encode(encoder, [text], "query") for text in texts]
    asked = [
        CollectionQuery.of(snapshot, text, query, Weights())
        for text, query in zip(texts, queries, strict=True)
    ]
    own = [exact(snapshot, query) for query in queries]
    ours = [[(hit.document.id, hit.score) for hit in snapshot.search(query).hits] for query in queries]
    qdrant_place, milvus_place = QdrantPlace(path=str(work / "qdrant")), MilvusPlace(str(work / "milvus.db"))
    qdrant = QdrantTarget(qdrant_place, "docs", settings, 100)
    milvus = MilvusTarget(milvus_place, "docs", settings, 100)
    parquet = ParquetTarget(work / "docs.parquet", settings)
    found: dict[str, Any] = {
        "qdrant_documents_a_second": rate(snapshot, qdrant),
        "milvus_lite_documents_a_second": rate(snapshot, milvus),
        "parquet_documents_a_second": rate(snapshot, parquet),
        "parquet_read_documents_a_second": read_rate(work, encoder, snapshot),
    }
    client = qdrant_place.open()
    for side, name in enumerate(("dense", "sparse")):
        answers = [qdrant_side(client, name, query) for query in asked]
        found[f"qdrant_{name}"] = agreement(answers, [scores[side] for scores in own])
    opening = f"client = {qdrant_place.code}"
    answers = [printed(qdrant.query(query), opening, client) for query in asked]
    found["qdrant_three_way"] = agreement(answers, ours)
    client.close()
    there = MilvusClient(milvus_place.uri)
    there.load_collection("docs")
    for side, name in enumerate(("dense", "sparse")):
        answers = [milvus_side(there, name, query) for query in asked]
        found[f"milvus_lite_{name}"] = agreement(answers, [scores[side] for scores in own])
    opening = f"client = {milvus_place.code}"
    answers = [printed(milvus.query(query), opening, there) for query in asked]
    found["milvus_lite_three_way"] = agreement(answers, ours)
    there.close()
    return found


def rate(snapshot: Snapshot, target: Target) -> float:
    """Documents a second of an export."""
    started = time.perf_counter()
    return round(export(snapshot, target) / (time.perf_counter() - started), 1)


def read_rate(work: Path, encoder: Encoder, snapshot: Snapshot) -> float:
    """Documents a second of a build from the file, which holds the same documents."""
    report = build_ready(LocalDocuments(encoder), work, "back", ParquetSource(work / "docs.parquet"))
    assert report.documents == snapshot.documents
    return round(report.documents / report.seconds, 1)


def exact(snapshot: Snapshot, query: Representations) -> list[Ranked]:
    """Of the dense and of the lexical side, all documents with their scores, best first."""
    ids, scores = snapshot.score_all(query)
    ranked = []
    for side in (0, 1):
        order = np.lexsort((np.array(ids), -scores[:, side]))
        ranked.append([(ids[place], float(scores[place, side])) for place in order.tolist()])
    return ranked


def qdrant_side(client: QdrantClient, name: str, query: CollectionQuery) -> Ranked:
    vector: Any = query.dense.tolist()
    if name == "sparse":
        vector = models.SparseVector(indices=query.token_ids.tolist(), values=query.weights.tolist())
    points = client.query_points("docs", query=vector, using=name, limit=TOP).points
    return [(point.payload["id"], point.score) for point in points if point.payload is not None]


def milvus_side(client: MilvusClient, name: str, query: CollectionQuery) -> Ranked:
    vector: Any = query.dense
    if name == "sparse":
        vector = dict(zip(query.token_ids.tolist(), query.weights.tolist(), strict=True))
    (hits,) = client.search("docs", [vector], anns_field=name, limit=TOP)
    return [(hit["id"], hit["distance"]) for hit in hits]


def printed(script: str, opening: str, client: Any) -> Ranked:
    """What a printed script prints. It opens and closes a client, which takes seconds: it gets this one."""
    assert opening in script
    script = script.replace(opening, "").replace("client.close()\n", "")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run: Callable[..., None] = exec
        run(compile(script, "query.py", "exec"), {"client": client})
    lines = [line.split(" ", 2) for line in out.getvalue().splitlines()]
    return [(identifier, float(score)) for score, identifier, *_ in lines]


def agreement(answers: Sequence[Ranked], own: Sequence[Ranked]) -> dict[str, Any]:
    """How many answers have our ids in our order, how many but for ties, and the rest."""
    counts = {"equal": 0, "equal_but_for_ties": 0, "other": 0}
    furthest = 0.0
    for answer, expected in zip(answers, own, strict=True):
        scores = dict(expected)
        differences = [abs(score - best) for (_, score), (_, best) in zip(answer, expected, strict=False)]
        differences += [abs(score - scores.get(identifier, np.inf)) for identifier, score in answer]
        furthest = max(furthest, *differences)
        if [identifier for identifier, _ in answer] == [
            identifier for identifier, _ in expected[: len(answer)]
        ]:
            counts["equal"] += 1
        elif max(differences) <= TIE:
            counts["equal_but_for_ties"] += 1
        else:
            counts["other"] += 1
    return {**counts, "largest_difference_of_a_score": float(f"{furthest:.2g}")}


if __name__ == "__main__":
    main()
