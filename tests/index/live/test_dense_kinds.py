"""`auto` chooses one dense kind for a collection, whoever writes its segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import Document
from tercet.index.collection import Collection
from tercet.index.dense import kinds
from tercet.index.dense.kinds import bytes_in_graphs
from tercet.index.live.collection import LiveCollection
from tercet.index.writer import SegmentLimits
from tercet.ingest.publishing import build_target


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of more than 40 documents has graphs, in segments of 5 or more; what is flushed, of 20."""
    monkeypatch.setattr(kinds, "FLAT_VECTORS", 40)
    monkeypatch.setattr("tercet.index.live.flush.FLAT_VECTORS", 19)
    monkeypatch.setattr("tercet.index.live.merge.INDEXED_VECTORS", 5)
    monkeypatch.setattr("tercet.index.writer.INDEXED_VECTORS", 5)


def kinds_of(collection: Collection) -> list[tuple[int, str]]:
    manifest = collection.manifest()
    assert manifest is not None
    return [(entry.documents, entry.dense_kind) for entry in manifest.segments]


def test_a_build_has_one_kind_wherever_a_document_stands(build: Any, random_corpus: Any) -> None:
    corpus = random_corpus(85, seed=2)
    assert kinds_of(build(corpus, segment=30)) == [(30, "hnsw"), (30, "hnsw"), (25, "hnsw")]
    assert kinds_of(build(corpus, name="small", segment=12))[-2:] == [(12, "hnsw"), (1, "flat")]
    budget = bytes_in_graphs(84, corpus[1].dense.shape[1])
    large = build(corpus, name="large", segment=30, dense_memory_bytes=budget)
    assert kinds_of(large) == [(30, "ivfrabitq"), (30, "ivfrabitq"), (25, "ivfrabitq")]


def test_token_vectors_do_not_end_a_segment(root: Path, random_corpus: Any, make_settings: Any) -> None:
    documents, encoded = random_corpus(60, 1)
    collection = Collection.create(root, "demo", make_settings(encoded, "demo"))
    with collection.writer(SegmentLimits(total_bytes=11_000)) as writer:
        for row in range(60):
            writer.add(documents[row : row + 1], encoded.take(np.array([row])))
        writer.publish()
    assert kinds_of(collection) == [(60, "hnsw")]


def test_flushes_and_merges_have_the_kind_of_the_collection(
    build: Any, random_corpus: Any, random_texts: Any
) -> None:
    corpus = random_corpus(85, seed=2)
    budget = bytes_in_graphs(84, corpus[1].dense.shape[1])
    collection = build(corpus, segment=30, dense_memory_bytes=budget)
    with LiveCollection(collection) as live:
        live.put([Document(f"flushed {row}", "") for row in range(20)], random_texts(20, 5))
        live.flush()
        assert kinds_of(collection)[3:] == [(20, "ivfrabitq")]
        for row in range(9):
            live.put([Document(f"merged {row}", "")], random_texts(1, row))
            live.flush()
        assert {kind for documents, kind in kinds_of(collection) if documents == 1} == {"flat"}
        live.merge()
        merged = [found for found in kinds_of(collection)[4:] if found[0] > 1]
        assert [kind for _, kind in merged] == ["ivfrabitq"]
        assert sum(documents for documents, _ in kinds_of(collection)) == 85 + 20 + 9


def test_a_collection_that_grows_gets_graphs_and_keeps_their_kind(
    root: Path, random_texts: Any, make_settings: Any
) -> None:
    one = random_texts(1, 0)
    budget = bytes_in_graphs(60, one.dense.shape[1])
    collection = Collection.create(root, "demo", make_settings(one, "demo", dense_memory_bytes=budget))
    with LiveCollection(collection) as live:
        for part in range(4):
            ids = [f"{part} {row}" for row in range(20)]
            live.put([Document(id, id) for id in ids], random_texts(20, part))
            live.flush()
    assert [kind for _, kind in kinds_of(collection)] == ["flat", "flat", "hnsw", "hnsw"]


def test_documents_that_are_added_lie_beside_those_that_are_there(
    build: Any, random_corpus: Any, random_texts: Any
) -> None:
    documents, encoded = random_corpus(85, seed=2)
    budget = bytes_in_graphs(84, encoded.dense.shape[1])
    collection = build((documents, encoded), dense_memory_bytes=budget)
    with build_target(collection, "upsert", "a1") as target:
        target.writer.add([Document(f"new {row}", "") for row in range(9)], random_texts(9, 5))
        target.publish(lambda done, total: None)
    assert kinds_of(collection) == [(85, "ivfrabitq"), (9, "ivfrabitq")]
