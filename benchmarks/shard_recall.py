"""Do graphs and lists over shards find what they find on one machine?

Passages of ../shared/data/scale-mix, in a fixed random order and of each so many characters, lie in one
collection of a server, and by a hash of their ids in the shards of a router: 2, and 4. Judged queries of the
same source are asked for by their dense vectors alone, with the same settings each time, and with as many
candidates as hits. Recall is the share of the exact best that are found; of equal scores any will do.

Without ../shared/data nothing is measured, and the command says so.

Run: python benchmarks/shard_recall.py [--passages 24000] [--queries 100] [--vectors FILE]
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import random
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from build import SCALE_MIX, SEED
from serving.server import machine, serving

from cluster.shards.placement import shards_of
from index.candidates import Document
from index.dense.index import least_effort
from index.dense.kinds import DenseKind
from ingest.target import open_or_create
from models.checkpoint import ENGLISH
from models.encoder import Encoder, encode
from models.loader import load_encoder
from models.representations import Float32, Float64, InputType, Representations, SparseRows, TokenVectors

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "shard_recall.json"
SHARDS = (1, 2, 4)
TOPS = (10, 100)
KINDS: tuple[DenseKind, ...] = ("hnsw", "ivfpq", "ivfrabitq")
EXACT: tuple[DenseKind, ...] = ("flat",)
TEXTS_AT_ONCE = 256
CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A dense kind and the options of a search, by their names in a request."""

    kind: DenseKind
    options: dict[str, int]


def cases(top: int) -> list[Case]:
    """What is compared for so many hits."""
    return [
        Case("hnsw", {"ef_search": least_effort(top)}),
        Case("hnsw", {}),
        *(Case(kind, {"nprobe": lists}) for kind in ("ivfpq", "ivfrabitq") for lists in (4, 16)),
    ]


def texts_of(name: str) -> list[tuple[str, str]]:
    """The ids and texts of the source's passages or queries."""
    with gzip.open(SCALE_MIX.with_name(f"{name}.jsonl.gz"), "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    return [
        (each["_id"], f"{each['title']}\n{each['text']}" if each.get("title") else each["text"])
        for each in records
    ]


def dense_of(encoder: Encoder, texts: Sequence[str], kind: InputType) -> Float32:
    """Dense vectors float32[N, D] of texts."""
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    vectors = np.empty((len(texts), encoder.info.dense_dimension), np.float32)
    for first in range(0, len(order), TEXTS_AT_ONCE):
        rows = order[first : first + TEXTS_AT_ONCE]
        found = encode(encoder, [texts[row] for row in rows], kind, outputs=["dense"]).dense
        assert found is not None
        vectors[rows] = found
        print(f"{first + len(rows):,} of {len(texts):,} texts", end="\r", flush=True)
    return vectors


def write(folder: Path, kind: DenseKind, encoder: Encoder, ids: Sequence[str], vectors: Float32) -> None:
    """A collection of a kind below a data root, of dense vectors alone."""
    settings = {"dense_kind": kind, "token_codec": "none", "lexical": "plain", "window": None}
    collection, _ = open_or_create(folder / "collections", kind, encoder.info, settings)
    rows = len(ids)
    empty = np.empty(0, np.int32)
    encoded = Representations(
        np.ones(rows, np.int64),
        np.zeros(rows, np.bool_),
        vectors,
        SparseRows(np.zeros(rows + 1, np.int64), empty, np.empty(0, np.float32)),
        TokenVectors(np.empty((0, encoder.info.colbert_dimension), np.float32), np.zeros(rows + 1, np.int64)),
    )
    with collection.writer() as writer:
        writer.add([Document(id, "-") for id in ids], encoded)
        writer.publish()


def scores_of(client: httpx.Client, body: dict[str, Any]) -> Float64:
    """The scores of the hits of a search, best first."""
    answer = client.post("/search", json=body)
    assert answer.is_success, answer.text
    return np.array([hit["score"] for hit in answer.json()["hits"]])


def recall(found: Float64, exact: Float64) -> float:
    """The share of the exact best that are found, by their scores."""
    return min(1.0, np.count_nonzero(found >= exact[-1]) / len(exact))


def request(kind: DenseKind, query: Float32, top: int, options: dict[str, int]) -> dict[str, Any]:
    """A search by a dense vector alone, for so many candidates as hits."""
    return {
        "collection": kind,
        "query": {"dense": query.tolist()},
        "weights": {"dense": 1, "sparse": 0, "colbert": 0},
        "candidates": {"dense": top, "sparse": 0},
        "top_k": top,
        "include": ["scores"],
        **({"search_options": options} if options else {}),
    }


def measured(client: httpx.Client, queries: Float32, exact: dict[int, list[Float64]]) -> list[dict[str, Any]]:
    """Mean and least recall of each case."""
    found = []
    for top in TOPS:
        for case in cases(top):
            recalls = [
                recall(scores_of(client, request(case.kind, query, top, case.options)), best)
                for query, best in zip(queries, exact[top], strict=True)
            ]
            found.append(
                {
                    "kind": case.kind,
                    "top": top,
                    **case.options,
                    "recall": round(float(np.mean(recalls)), 4),
                    "least": round(min(recalls), 4),
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=24_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--vectors", type=Path, help="where the passages' vectors are, or are kept")
    parser.add_argument("--output", type=Path, default=RESULT)
    asked = parser.parse_args()
    if not SCALE_MIX.is_file():
        raise SystemExit(f"nothing was measured: {SCALE_MIX} is not here")
    before = machine()
    passages = texts_of("corpus")
    random.Random(SEED).shuffle(passages)  # noqa: S311  # no secret
    ids = [id for id, _ in passages[: asked.passages]]
    encoder = load_encoder(str(ROOT / "checkpoints" / ENGLISH))
    queries = dense_of(encoder, [text for _, text in texts_of("queries")[: asked.queries]], "query")
    if asked.vectors is not None and asked.vectors.is_file():
        vectors = np.load(asked.vectors)[: asked.passages].astype(np.float32)
    else:
        texts = [text[:CHARACTERS] for _, text in passages[: asked.passages]]
        vectors = dense_of(encoder, texts, "document")
        if asked.vectors is not None:
            np.save(asked.vectors, vectors.astype(np.float16))
    assert len(vectors) == len(ids)
    figures: dict[str, list[dict[str, Any]]] = {}
    exact: dict[int, list[Float64]] = {}
    for shards in SHARDS:
        with tempfile.TemporaryDirectory(prefix="tercet-recall-") as scratch, ExitStack() as stack:
            places, fronts = shards_of(ids, shards), []
            for shard in range(shards):
                folder, rows = Path(scratch) / f"shard{shard}", np.flatnonzero(places == shard)
                folder.mkdir()
                for kind in (*KINDS, *EXACT) if shards == 1 else KINDS:
                    write(folder, kind, encoder, [ids[row] for row in rows.tolist()], vectors[rows])
                fronts.append(stack.enter_context(serving(folder)).url)
            if shards > 1:
                router = Path(scratch) / "router"
                router.mkdir()
                fronts = [stack.enter_context(serving(router, shards=",".join(fronts))).url]
            client = stack.enter_context(httpx.Client(base_url=fronts[0], timeout=120))
            if shards == 1:
                exact = {
                    top: [scores_of(client, request("flat", query, top, {})) for query in queries]
                    for top in TOPS
                }
            figures[f"shards_{shards}"] = measured(client, queries, exact)
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": before,
        "checkpoint": ENGLISH,
        "passages": len(ids),
        "characters": CHARACTERS,
        "queries": len(queries),
        **figures,
    }
    asked.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    for shards in SHARDS[1:]:
        for one, over in zip(figures["shards_1"], figures[f"shards_{shards}"], strict=True):
            assert over["recall"] >= one["recall"], f"{shards} shards find less: {over}, one machine {one}"


if __name__ == "__main__":
    main()
