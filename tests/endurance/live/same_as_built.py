"""Does a live collection answer as a build of the same documents does, after any operations?

Random operations on a live collection (put, replace, delete by id and by filter, patch, flush, merge,
restart, a build that is adopted) go to a plain dictionary, too. Now and then, and in the end, that is built
at once, and each of many queries, with and without filters and BM25, must give the same ids and scores, to
the last digit. Then a larger collection with HNSW graphs is written in small pieces, with deletes, and its
recall@10 is measured.

Run: python -m tests.endurance.live.same_as_built [--operations N] [--seed N] [--work FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tercet.index.candidates import Document, Weights
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.documents.filters import Filter, parse_filter
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify
from tercet.models.representations import Representations, SparseRows, TokenVectors

DENSE, COLBERT, VOCABULARY = 32, 16, 500
IDS = 400
WORDS = ["tea", "water", "train", "station", "bees", "flower", "noon", "hot", "salt", "winter", "river"]
FILTERS: list[Filter | None] = [
    None,
    parse_filter({"eq": {"kind": "a"}}),
    parse_filter({"and": [{"gte": {"year": 1990}}, {"not": {"eq": {"kind": "b"}}}]}),
]
CHECK_EVERY = 500
RECALL = 0.99
GRAPH_DOCUMENTS = 60_000
Model = dict[str, tuple[Document, Representations]]


def representations(count: int, random: np.random.Generator) -> Representations:
    """Unit vectors, up to 20 terms and up to 12 token vectors each."""
    terms = [np.sort(random.choice(VOCABULARY, random.integers(1, 21), replace=False)) for _ in range(count)]
    tokens = random.integers(1, 13, count)
    lengths = np.array([len(each) for each in terms])
    return Representations(
        tokens,
        np.zeros(count, np.bool_),
        unit(random.standard_normal((count, DENSE))),
        SparseRows(
            np.append(0, np.cumsum(lengths)),
            np.concatenate(terms).astype(np.int32),
            random.random(int(lengths.sum())).astype(np.float32) + np.float32(0.01),
        ),
        TokenVectors(
            unit(random.standard_normal((int(tokens.sum()), COLBERT))), np.append(0, np.cumsum(tokens))
        ),
    )


def unit(vectors: Any) -> Any:
    """Rows of length 1, float32."""
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def document(id: str, random: np.random.Generator) -> Document:
    """With a few words, and metadata for filters."""
    metadata = {"kind": str(random.choice(["a", "b", "c"])), "year": int(random.integers(1980, 2000))}
    return Document(id, " ".join(random.choice(WORDS, random.integers(1, 9))), None, metadata)


class Run:
    """One live collection beside its model."""

    def __init__(self, work: Path, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.work = work
        self.settings = CollectionSettings(
            "live",
            "made up",
            "made-up",
            DENSE,
            COLBERT,
            VOCABULARY,
            dense_kind="flat",
            lexical="idf",
            bm25=True,
            fields={"kind": "keyword", "year": "integer"},
        )
        self.model: Model = {}
        self.operations: Counter[str] = Counter()
        self.built = 0
        Collection.create(work, "live", self.settings)
        self.live = self.opened()
        self.queries = representations(12, np.random.default_rng(seed + 1))

    def opened(self) -> LiveCollection:
        """The collection, opened to be written to. Small limits make the background flush and merge."""
        limits = LiveLimits(flush_documents=40, merge_width=3)
        return LiveCollection(Collection.open(self.work, "live"), limits).__enter__()

    def step(self) -> None:
        """One random operation on both."""
        name = str(self.random.choice(list(CHANCES), p=list(CHANCES.values())))
        self.operations[name] += 1
        getattr(self, f"_{name}")()

    def _ids(self, most: int) -> list[str]:
        count = int(self.random.integers(1, most + 1))
        return [f"d{number:03d}" for number in self.random.choice(IDS, count, replace=False)]

    def _made(self, most: int) -> Model:
        ids = self._ids(most)
        encoded = representations(len(ids), self.random)
        return {id: (document(id, self.random), encoded.take(np.array([row]))) for row, id in enumerate(ids)}

    def _put(self) -> None:
        made = self._made(8)
        self.live.put(*batch(made))
        self.model |= made

    def _delete(self) -> None:
        ids = self._ids(6)
        there = [id for id in ids if id in self.model]
        assert self.live.delete(ids).documents == len(there)
        self.model = {id: kept for id, kept in self.model.items() if id not in ids}

    def _delete_matching(self) -> None:
        year = int(self.random.integers(1980, 2000))
        condition = parse_filter({"and": [{"eq": {"year": year}}, {"eq": {"kind": "c"}}]})
        gone = [
            id
            for id, (each, _) in self.model.items()
            if each.metadata["year"] == year and each.metadata["kind"] == "c"
        ]
        assert self.live.delete_matching(condition).documents == len(gone)
        self.model = {id: kept for id, kept in self.model.items() if id not in gone}

    def _patch(self) -> None:
        if self.model:
            id = str(self.random.choice(sorted(self.model)))
            before, encoded = self.model[id]
            metadata = document(id, self.random).metadata
            self.live.patch(id, metadata)
            self.model[id] = replace(before, metadata=metadata), encoded

    def _flush(self) -> None:
        self.live.flush()

    def _merge(self) -> None:
        self.live.merge()

    def _restart(self) -> None:
        self.live.__exit__(None, None, None)
        self.live = self.opened()

    def _adopt(self) -> None:
        with self.live.begin_build() as build:
            made = self._made(60)
            source = self._build(made)
            written = self._made(5)
            self.live.put(*batch(written))
            ids = self._ids(5)
            self.live.delete(ids)
            mode = "replace" if self.random.random() < 0.2 else "upsert"
            self.live.adopt(build, source.layout, mode)  # type: ignore[arg-type]
        self.model = (self.model if mode == "upsert" else {}) | made | written
        self.model = {id: kept for id, kept in self.model.items() if id not in ids}

    def _build(self, model: Model, **changes: Any) -> Collection:
        self.built += 1
        layout = CollectionLayout(self.work / f"built-{self.built}")
        layout.folder.mkdir()
        settings = replace(self.settings, **changes)
        settings.write(layout.settings)
        collection = Collection(layout, settings)
        with collection.writer() as writer:
            if model:
                writer.add(*batch(model))
            writer.publish()
        return collection

    def check(self) -> int:
        """Compares all answers with those of a build; returns how many there were."""
        expected, found = self._build(self.model).snapshot(), self.live.snapshot()
        assert found.documents == len(self.model)
        answers = 0
        for row in range(len(self.queries)):
            query = self.queries.take(np.array([row]))
            for condition in FILTERS:
                for weights in (Weights(), Weights(1, 0.5, 2, 1)):
                    pair = [hits(each, query, condition, weights) for each in (found, expected)]
                    assert pair[0] == pair[1], f"query {row}, {condition}, {weights}"
                    answers += 1
        assert found.page(None, IDS) == expected.page(None, IDS)
        return answers


CHANCES = {
    "put": 0.44,
    "delete": 0.18,
    "delete_matching": 0.05,
    "patch": 0.15,
    "flush": 0.08,
    "merge": 0.06,
    "restart": 0.03,
    "adopt": 0.01,
}


def batch(model: Model) -> tuple[list[Document], Representations]:
    """Documents and representations of all of a model."""
    return [each for each, _ in model.values()], Representations.concatenate(
        [encoded for _, encoded in model.values()]
    )


def hits(snapshot: Snapshot, query: Representations, condition: Filter | None, weights: Weights) -> list[Any]:
    """Documents and scores."""
    text = " ".join(WORDS[:4])
    result = snapshot.search(query, text=text, top_k=30, weights=weights, filter=condition)
    return [(hit.document, hit.score, hit.scores) for hit in result.hits]


def recall(work: Path, documents: int, seed: int) -> tuple[float, int]:
    """recall@10 of the dense side through graphs, and the number of segments."""
    random = np.random.default_rng(seed)
    # Clusters, as texts have: neighbours of a vector that no cluster has are as far as all others.
    centres = random.standard_normal((500, DENSE))
    made = unit(
        centres[random.integers(500, size=documents)] + 0.4 * random.standard_normal((documents, DENSE))
    )
    settings = CollectionSettings(
        "graph",
        "made up",
        "made-up",
        DENSE,
        0,
        VOCABULARY,
        dense_kind="hnsw",
        token_codec="none",
    )
    no_terms = SparseRows(np.zeros(1001, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    limits = LiveLimits(flush_documents=4_000, merge_width=4)
    with LiveCollection(Collection.create(work, "graph", settings), limits) as live:
        for start in range(0, documents, 1000):
            some = [Document(f"{number:06d}", "") for number in range(start, start + 1000)]
            dense = made[start : start + 1000]
            live.put(
                some, Representations(np.ones(1000, np.int64), np.zeros(1000, np.bool_), dense, no_terms)
            )
        gone = random.choice(documents, documents // 8, replace=False)
        live.delete([f"{number:06d}" for number in gone])
        live.flush()
        live.merge()
        snapshot, segments = live.snapshot(), live.stats().segments
        kept = np.setdiff1d(np.arange(documents), gone)
        found = 0
        for row in range(200):
            query = unit(centres[row : row + 1] + 0.4 * random.standard_normal((1, DENSE)))
            exact = kept[np.argsort(-(made[kept].astype(np.float16).astype(np.float32) @ query[0]))[:10]]
            asked = Representations(np.ones(1, np.int64), np.zeros(1, np.bool_), query)
            result = snapshot.search(asked, top_k=10, weights=Weights(1, 0, 0))
            found += len({f"{number:06d}" for number in exact} & {hit.document.id for hit in result.hits})
    return found / 2000, segments


def main() -> None:
    """Runs both, and writes what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, default=Path(), help="where collections are written")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.work.resolve(), prefix="same-") as folder:
        print("seed", asked.seed)
        run, answers = Run(Path(folder), asked.seed), 0
        for number in range(1, asked.operations + 1):
            run.step()
            if number % CHECK_EVERY == 0 or number == asked.operations:
                answers += run.check()
                print(f"{number} operations, {len(run.model)} documents, {answers} equal answers", flush=True)
        run.live.__exit__(None, None, None)
        problems = verify(Path(folder), "live")
        assert not problems, problems
        documents = min(GRAPH_DOCUMENTS, 6 * asked.operations // 1000 * 1000)
        found, segments = recall(Path(folder), documents, asked.seed)
    record = {
        "seed": asked.seed,
        "operations": dict(run.operations),
        "equal_answers": answers,
        "graph_documents": documents,
        "graph_segments": segments,
        "recall@10": found,
    }
    print(json.dumps(record, indent=2))
    if found < RECALL:
        sys.exit(f"recall@10 is {found:.4f}, not {RECALL}")


if __name__ == "__main__":
    main()
