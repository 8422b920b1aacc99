"""What does a filter cost a search, does it find what it should, and nothing else?

100,000 synthetic documents in one segment with a graph: vectors of 384 dimensions in 2,000 clusters with a
decaying spectrum (as in dense.py), lexical weights under Zipf's law (those of sparse.py), no token vectors:
what a filter costs is not hidden by scoring that no filter changes. Filters that 50, 5, 0.5 and 0.005% of the
documents pass, as one value of a keyword and as ranges of numbers and moments, and filters that go with the
query: documents of the clusters nearest to it alone, or none of these. Recall is of the ten hits, against the
exact sums of all documents that pass. Each search runs beside the same one without a filter, in turn, and the
filter is remembered, as those of an application are; `first_ms` is a search with one that is new.

Then 10,000 values in an `in` over 100 segments of 1,000 documents, from the JSON on.

Run: python -m benchmarks.filters [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.dense import CLUSTERS, DIMENSION, SPECTRUM, Matrix, around, unit
from benchmarks.recording import dated, write
from benchmarks.sparse import VOCABULARY
from benchmarks.sparse import collection as lexical
from tercet.index.candidates import Document, Weights
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import parse_filter
from tercet.index.snapshot import Snapshot
from tercet.index.writer import SegmentLimits
from tercet.models.representations import Representations, SparseRows

DOCUMENTS, QUERIES, TERMS, TOP, BATCH = 100_000, 100, 12, 10, 10_000
PARTS = {"50%": 2, "5%": 20, "0.5%": 200, "0.005%": 20_000}
PASSES = 3
SEGMENTS, VALUES = 100, 10_000
RECALL_BAR, TIME_BAR = 0.99, 1.5
WEIGHTS = Weights(1, 1, 0)
START = datetime.datetime(2020, 1, 1, tzinfo=UTC)
FIELDS: dict[str, Any] = {
    **{f"one_of_{parts}": "keyword" for parts in PARTS.values()},
    "number": "number",
    "moment": "datetime",
    "cluster": "integer",
    "new": "boolean",
}

Figures = dict[str, Any]
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents as they are added, queries, and for each query the clusters, the nearest first."""

    metadata: list[dict[str, Any]]
    documents: Representations
    queries: list[Representations]
    near: npt.NDArray[np.int64]


def corpus() -> Corpus:
    """The same at every call."""
    generator = np.random.default_rng(16)
    centres = generator.standard_normal((CLUSTERS, DIMENSION), np.float32)
    clusters, wanted = generator.integers(0, CLUSTERS, DOCUMENTS), generator.integers(0, CLUSTERS, QUERIES)
    rows, asked = lexical(generator)
    order = generator.permutation(DOCUMENTS)
    metadata = [
        {
            **{f"one_of_{parts}": f"v{place % parts:05}" for parts in PARTS.values()},
            "number": place / DOCUMENTS,
            "moment": (START + timedelta(seconds=place)).isoformat(),
            "cluster": cluster,
            "new": place % 3 == 0,
        }
        for place, cluster in zip(order.tolist(), clusters.tolist(), strict=True)
    ]
    queries = around(generator, centres[wanted])
    alike = unit(centres * SPECTRUM) @ queries.T
    return Corpus(
        metadata,
        encoded(around(generator, centres[clusters]), rows.take(np.arange(DOCUMENTS))),
        [
            encoded(queries[place : place + 1], SparseRows(np.array([0, len(ids)]), ids, weights))
            for place, (ids, weights) in enumerate(asked[:QUERIES])
        ],
        np.argsort(-alike, axis=0).T,
    )


def encoded(dense: Matrix, sparse: SparseRows) -> Representations:
    return Representations(np.ones(len(dense), np.int64), np.zeros(len(dense), np.bool_), dense, sparse)


def built(folder: Path, made: Corpus) -> Snapshot:
    """The collection of the documents, which is made where it is not there."""
    if not (folder / "filters").exists():
        documents = [
            Document(f"d{row:06}", "", metadata=metadata) for row, metadata in enumerate(made.metadata)
        ]
        collection = Collection.create(folder, "filters", settings("filters", DIMENSION, FIELDS, "hnsw"))
        with collection.writer(SegmentLimits(documents=DOCUMENTS)) as writer:
            for first in range(0, DOCUMENTS, BATCH):
                rows = np.arange(first, first + BATCH)
                writer.add(documents[first : first + BATCH], made.documents.take(rows))
            writer.publish()
    return Collection.open(folder, "filters").snapshot()


def settings(name: str, dimension: int, fields: Any, dense_kind: Any) -> CollectionSettings:
    return CollectionSettings(
        name=name,
        encoder="none",
        fingerprint="0",
        dense_dimension=dimension,
        colbert_dimension=0,
        vocabulary_size=VOCABULARY,
        dense_kind=dense_kind,
        token_codec="none",  # noqa: S106  # a codec of token vectors, no secret
        fields=fields,
    )


def table(made: Corpus) -> list[tuple[str, str, list[Tree]]]:
    """Share, kind, and the filter of each query."""
    lines: list[tuple[str, str, list[Tree]]] = []
    for share, parts in PARTS.items():
        values = [f"v{query % parts:05}" for query in range(QUERIES)]
        moments = (START + timedelta(seconds=DOCUMENTS // parts)).isoformat()
        lines += [
            (share, "keyword", [{"eq": {f"one_of_{parts}": value}} for value in values]),
            (share, "number", [{"lt": {"number": 1 / parts}}] * QUERIES),
            (share, "datetime", [{"lt": {"moment": moments}}] * QUERIES),
        ]
    half = [near[: CLUSTERS // 2].tolist() for near in made.near]
    tenth = [near[: CLUSTERS // 10].tolist() for near in made.near]
    return [
        *lines,
        ("50%", "near the query", [{"in": {"cluster": some}} for some in half]),
        ("50%", "far from the query", [{"not": {"in": {"cluster": some}}} for some in half]),
        ("10%", "near the query", [{"in": {"cluster": some}} for some in tenth]),
        ("90%", "far from the query", [{"not": {"in": {"cluster": some}}} for some in tenth]),
    ]


def measured(snapshot: Snapshot, made: Corpus, filters: Sequence[Tree], exact: Sequence[Any]) -> Figures:
    """Recall, hits outside, and milliseconds of searches with a filter and without, in turn."""
    times, known = np.full((2, QUERIES), np.inf), {}
    firsts, recalls, outside = [], [], 0
    ids = {f"d{row:06}": row for row in range(DOCUMENTS)}
    for place, (query, tree, sums) in enumerate(zip(made.queries, filters, exact, strict=True)):
        parsed = parse_filter(tree)
        for number in range(PASSES):
            for side in (0, 1) if (number + place) % 2 else (1, 0):
                started = time.perf_counter()
                result = snapshot.search(
                    query, top_k=TOP, weights=WEIGHTS, filter=parsed if side == 0 else None
                )
                took = (time.perf_counter() - started) * 1e3
                times[side, place] = min(times[side, place], took)
                if side == 0:
                    hits = result.hits
                    if number == 0:
                        firsts.append(took)
        text = json.dumps(tree)
        if text not in known:
            known = {text: passing_rows(made, tree)}
        passing = known[text]
        best = np.sort(sums[passing])[::-1][:TOP]
        rows = [ids[hit.document.id] for hit in hits]
        outside += int((~passing[rows]).sum())
        recalls.append(np.count_nonzero(sums[rows] >= best[-1] - 1e-6) / len(best))
    return {
        f"recall@{TOP}": round(float(np.mean(recalls)), 4),
        "outside": outside,
        "median_ms": round(float(np.median(times[0])), 3),
        "unfiltered_ms": round(float(np.median(times[1])), 3),
        "ratio": round(float(np.median(times[0]) / np.median(times[1])), 2),
        "first_ms": round(float(np.median(firsts)), 3),
    }


def passing_rows(made: Corpus, tree: Tree) -> npt.NDArray[np.bool_]:
    """The documents that a filter of the table matches, by plain Python."""
    ((operation, operand),) = tree.items()
    if operation == "not":
        return ~passing_rows(made, operand)
    ((field, wanted),) = operand.items()
    values = [metadata[field] for metadata in made.metadata]
    if operation == "lt":  # moments here have one form, so they compare
        return np.array([value < wanted for value in values])
    known = frozenset(wanted if operation == "in" else [wanted])
    return np.array([value in known for value in values])


def attack(folder: Path) -> Figures:
    """Milliseconds of a search over 100 segments without a filter, and with 10,000 values in an `in`."""
    generator = np.random.default_rng(5)
    documents = [
        Document(f"d{row:06}", "", metadata={"name": f"name {row:06}"}) for row in range(1_000 * SEGMENTS)
    ]
    rows, _ = lexical(generator)
    dense = unit(generator.standard_normal((len(documents), 8), np.float32))
    collection = Collection.create(folder, "attack", settings("attack", 8, {"name": "keyword"}, "flat"))
    with collection.writer(SegmentLimits(documents=1_000)) as writer:
        for first in range(0, len(documents), 1_000):
            some = np.arange(first, first + 1_000)
            writer.add(documents[first : first + 1_000], encoded(dense[some], rows.take(some)))
        writer.publish()
    query = encoded(dense[:1], rows.take(np.array([0])))
    figures: Figures = {"segments": SEGMENTS, "values": VALUES}
    snapshot, times = Collection.open(folder, "attack").snapshot(), []
    for _ in range(10):
        started = time.perf_counter()
        snapshot.search(query, top_k=TOP, weights=WEIGHTS)
        times.append((time.perf_counter() - started) * 1e3)
    figures["unfiltered_ms"] = round(float(np.median(times)), 2)
    for name, step, form in (("there", 10, "name {:06}"), ("absent", 10, "name {:06}b")):
        snapshot, times = Collection.open(folder, "attack").snapshot(), []
        for shift in range(10):
            text = json.dumps({"in": {"name": [form.format(step * row + shift) for row in range(VALUES)]}})
            started = time.perf_counter()
            snapshot.search(query, top_k=TOP, weights=WEIGHTS, filter=parse_filter(json.loads(text)))
            times.append((time.perf_counter() - started) * 1e3)
        figures |= {f"{name}_ms": round(float(np.median(times)), 2), f"{name}_first_ms": round(times[0], 2)}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="keeps the collection of the table from run to run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tercet-filters-") as scratch:
        attacked = attack(Path(scratch))
        print(json.dumps(attacked))
        made = corpus()
        snapshot = built(arguments.folder or Path(scratch), made)
        exact = [snapshot.score_all(query)[1][:, :2].astype(np.float64).sum(axis=1) for query in made.queries]
        lines = []
        for share, kind, filters in table(made):
            lines.append({"share": share, "filter": kind, **measured(snapshot, made, filters, exact)})
            print(json.dumps(lines[-1]))
    record = {
        "load_average": round(os.getloadavg()[0], 1),
        "documents": DOCUMENTS,
        "dimension": DIMENSION,
        "queries": QUERIES,
        "filters": lines,
        "in_of_10000_values": attacked,
    }
    write("filters", dated(record))
    assert not any(line["outside"] for line in lines), "hits that the filter does not match"
    assert all(line[f"recall@{TOP}"] >= RECALL_BAR for line in lines), f"recall below {RECALL_BAR}"
    independent = [line for line in lines if line["filter"] in ("keyword", "number", "datetime")]
    assert all(line["ratio"] <= TIME_BAR for line in independent), f"more than {TIME_BAR} times"


if __name__ == "__main__":
    main()
