"""Do graphs and lists over shards find what they find on one machine?

Passages of ../shared/data/scale-mix, in a fixed random order and of each so many characters, lie in one
collection, and by a hash of their ids in the shards of one: 2, and 4. Judged queries of the same source are
asked for by their dense vectors alone, with the same settings each time and as many candidates as hits, by
the two rounds that a router has its shards search in. Recall is the share of the exact best that are found;
of equal scores any will do. Which few hits a graph misses depends on how it came to be: `error` is the
standard error of the mean.

Without ../shared/data nothing is measured, and the command says so.

Run: python -m benchmarks.shard_recall [--passages 24000] [--queries 600] [--vectors FILE]
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.build import SCALE_MIX, SEED
from benchmarks.serving.server import machine
from tercet.cluster.shards.placement import shards_of
from tercet.index.candidates import CandidateLimits, DenseOptions, Document, Page, Weights
from tercet.index.dense.index import least_effort
from tercet.index.dense.kinds import DenseKind
from tercet.index.search.merging import left_of, merged
from tercet.index.search.shard_search import ShardQuery
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.snapshot import Snapshot
from tercet.ingest.target import open_or_create
from tercet.models.checkpoint import ENGLISH
from tercet.models.encoder import Encoder, encode
from tercet.models.loader import load_encoder
from tercet.models.representations import (
    Float32,
    Float64,
    InputType,
    Representations,
    SparseRows,
    TokenVectors,
)

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "shard_recall.json"
SHARDS = (1, 2, 4)
TOPS = (10, 100)
KINDS: tuple[DenseKind, ...] = ("hnsw", "ivfpq", "ivfrabitq")
EXACT: tuple[DenseKind, ...] = ("flat",)
TEXTS_AT_ONCE = 256
CHARACTERS = 200
WEIGHTS = Weights(1, 0, 0)

Figures = dict[str, Any]


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


def of_dense(vectors: Float32, encoder: Encoder) -> Representations:
    """Representations float32[N, D] of texts that have nothing else."""
    rows, nothing = len(vectors), np.zeros(len(vectors) + 1, np.int64)
    return Representations(
        np.ones(rows, np.int64),
        np.zeros(rows, np.bool_),
        vectors,
        SparseRows(nothing, np.empty(0, np.int32), np.empty(0, np.float32)),
        TokenVectors(np.empty((0, encoder.info.colbert_dimension), np.float32), nothing),
    )


def built(root: Path, kind: DenseKind, encoder: Encoder, ids: Sequence[str], vectors: Float32) -> Snapshot:
    """A collection of a kind, of dense vectors alone."""
    settings = {"dense_kind": kind, "token_codec": "none", "lexical": "plain", "window": None}
    collection, _ = open_or_create(root, kind, encoder.info, settings)
    with collection.writer() as writer:
        writer.add([Document(id, "-") for id in ids], of_dense(vectors, encoder))
        writer.publish()
    return collection.snapshot()


def found_by(shards: Sequence[Snapshot], query: Representations, top: int, options: DenseOptions) -> Float64:
    """The scores of the hits of a search by the dense side alone, best first."""
    limits = CandidateLimits(top, 0)
    if len(shards) == 1:
        asked = SnapshotQuery(
            query, weights=WEIGHTS, candidates=limits, dense_options=options, top_k=top, contents=False
        )
        return np.array([hit.score for hit in shards[0].answer(asked).hits])
    wanted = ShardQuery(query, None, WEIGHTS, limits, options, nearest=True)
    searches = [shard.shard_search(wanted) for shard in shards]
    left = left_of([search.propose() for search in searches], limits, top)
    parts = [search.best(own, top, None, 0) for search, own in zip(searches, left, strict=True)]
    return merged(parts, WEIGHTS, "sum", Page(), top).sums


def recall(found: Float64, exact: Float64) -> float:
    """The share of the exact best that are found, by their scores."""
    return min(1.0, np.count_nonzero(found >= exact[-1]) / len(exact))


def measured(
    shards: Mapping[DenseKind, Sequence[Snapshot]], queries: Representations, exact: dict[int, list[Float64]]
) -> list[Figures]:
    """Mean recall of each case, its standard error, and the least."""
    found = []
    for top in TOPS:
        for case in cases(top):
            options = DenseOptions(**case.options)
            recalls = np.array(
                [
                    recall(found_by(shards[case.kind], queries.take(np.array([row])), top, options), best)
                    for row, best in enumerate(exact[top])
                ]
            )
            found.append(
                {
                    "kind": case.kind,
                    "top": top,
                    **case.options,
                    "recall": round(float(recalls.mean()), 4),
                    "error": round(float(recalls.std() / len(recalls) ** 0.5), 4),
                    "least": round(float(recalls.min()), 2),
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--passages", type=int, default=24_000)
    parser.add_argument("--queries", type=int, default=600)
    parser.add_argument("--vectors", type=Path, help="where the passages' vectors are, or are kept")
    parser.add_argument("--output", type=Path, default=RESULT)
    asked = parser.parse_args()
    if not SCALE_MIX.is_file():
        raise SystemExit(f"nothing was measured: {SCALE_MIX} is not here")
    before = machine()
    passages = texts_of("corpus")
    random.Random(SEED).shuffle(passages)
    ids = [id for id, _ in passages[: asked.passages]]
    encoder = load_encoder(str(ROOT / "checkpoints" / ENGLISH))
    questions = texts_of("queries")
    random.Random(SEED).shuffle(questions)
    queries = dense_of(encoder, [text for _, text in questions[: asked.queries]], "query")
    if asked.vectors is not None and asked.vectors.is_file():
        vectors = np.load(asked.vectors)[: asked.passages].astype(np.float32)
    else:
        texts = [text[:CHARACTERS] for _, text in passages[: asked.passages]]
        vectors = dense_of(encoder, texts, "document")
        if asked.vectors is not None:
            np.save(asked.vectors, vectors.astype(np.float16))
    assert len(vectors) == len(ids)
    figures: dict[str, list[Figures]] = {}
    exact: dict[int, list[Float64]] = {}
    asked_for = of_dense(queries, encoder)
    for count in SHARDS:
        places = shards_of(ids, count)
        with tempfile.TemporaryDirectory(prefix="tercet-recall-") as scratch, ExitStack() as stack:
            opened: dict[DenseKind, list[Snapshot]] = {}
            for kind in (*KINDS, *EXACT) if count == 1 else KINDS:
                opened[kind] = []
                for shard in range(count):
                    rows, root = np.flatnonzero(places == shard), Path(scratch) / f"shard{shard}"
                    own = [ids[row] for row in rows.tolist()]
                    snapshot = built(root, kind, encoder, own, vectors[rows])
                    opened[kind].append(stack.enter_context(closing(snapshot)))
            if count == 1:
                exact = {
                    top: [
                        found_by(opened["flat"], asked_for.take(np.array([row])), top, DenseOptions())
                        for row in range(len(asked_for))
                    ]
                    for top in TOPS
                }
            figures[f"shards_{count}"] = measured(opened, asked_for, exact)
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
    for count in SHARDS[1:]:
        for one, over in zip(figures["shards_1"], figures[f"shards_{count}"], strict=True):
            least = one["recall"] - 2 * (one["error"] ** 2 + over["error"] ** 2) ** 0.5
            assert over["recall"] >= least, f"{count} shards find less: {over}, one machine {one}"


if __name__ == "__main__":
    main()
