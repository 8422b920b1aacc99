"""Segments with lists: proposals of all are merged by their codes, and few vectors are read."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, DenseOptions, Weights
from tercet.index.collection import Collection
from tercet.index.dense.index import DenseIndex
from tercet.index.documents.filters import parse_filter
from tercet.index.live.collection import LiveCollection
from tercet.index.search import list_search
from tercet.models.representations import Representations

SEGMENTS, DOCUMENTS, K = 3, 6_000, 40
OPTIONS = DenseOptions(nprobe=8)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors were read for each search of lists."""
    counts: list[int] = []
    real = list_search.products_at

    def products_at(vectors: Any, places: Any, rows: Any, query: Any) -> Any:
        counts.append(len(rows))
        return real(vectors, places, rows, query)

    monkeypatch.setattr(list_search, "products_at", products_at)
    return counts


@pytest.fixture
def corpus(random_corpus: Any) -> Any:
    return random_corpus(DOCUMENTS, seed=4, repeat=30)


def built(build: Any, corpus: Any, **changes: Any) -> Collection:
    made: Collection = build(corpus, segment=DOCUMENTS // SEGMENTS, dense_kind="ivfpq", **changes)
    return made


def recall(found: Any, encoded: Representations, query: Representations, rows: Any) -> float:
    assert encoded.dense is not None
    assert query.dense is not None
    scores = encoded.dense.astype(np.float16)[rows].astype(np.float64) @ query.dense[0].astype(np.float64)
    last = np.sort(scores)[-K]
    return float(np.count_nonzero(found.dense >= last - 2e-6) / K)


def test_the_best_of_all_segments_are_found_and_few_vectors_read(
    build: Any, corpus: Any, random_texts: Any, read: list[int]
) -> None:
    _, encoded = corpus
    snapshot = built(build, corpus).snapshot()
    assert all(segment.dense_index.has_lists for segment in snapshot._opened())
    found = []
    for seed in range(8):
        query = random_texts(1, 50 + seed)
        some = snapshot.retrieve(query, candidates=CandidateLimits(K, 0), dense_options=OPTIONS)
        found.append(recall(some, encoded, query, np.arange(DOCUMENTS)))
    assert np.mean(found) > 0.9
    assert len(read) == 8
    assert max(read) < 1.2 * list_search.VECTORS_READ * K  # three times that, were each segment's best read


def test_the_best_may_all_lie_in_one_segment(
    build: Any, corpus: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is first asked for 25, a third of forty and three standard deviations, and then for all."""
    monkeypatch.setattr(list_search, "VECTORS_READ", 1)
    documents, encoded = corpus
    query = random_texts(1, 9)
    order = np.argsort(-(encoded.dense @ query.dense[0]), kind="stable")
    snapshot = built(build, ([documents[row] for row in order.tolist()], encoded.take(order))).snapshot()
    found = snapshot.retrieve(query, candidates=CandidateLimits(K, 0), dense_options=OPTIONS)
    assert (found.segments == 0).all()
    assert len(found) == K


def test_equal_and_deleted_documents(build: Any, corpus: Any) -> None:
    """The first thirty documents are equal: all are found, and none that is not allowed."""
    documents, encoded = corpus
    marked = [replace(document, metadata={"kept": row % 3 != 0}) for row, document in enumerate(documents)]
    snapshot = built(build, (marked, encoded), fields={"kept": "boolean"}).snapshot()
    query = encoded.take(np.array([0]))
    limits = CandidateLimits(K, 0)
    found = snapshot.retrieve(query, candidates=limits, dense_options=OPTIONS)
    assert np.count_nonzero(found.dense == found.dense.max()) == 30
    only = parse_filter({"eq": {"kept": True}})
    found = snapshot.retrieve(query, candidates=limits, dense_options=OPTIONS, filter=only)
    assert np.count_nonzero(found.dense == found.dense.max()) == 20
    assert len(found) == K


def test_a_segment_whose_lists_have_too_few_is_searched_by_itself(
    build: Any, corpus: Any, random_texts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, encoded = corpus
    snapshot, query = built(build, corpus).snapshot(), random_texts(1, 9)
    nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    monkeypatch.setattr(DenseIndex, "propose_from_lists", lambda *_: nothing)
    found = snapshot.retrieve(query, candidates=CandidateLimits(K, 0), dense_options=OPTIONS)
    assert recall(found, encoded, query, np.arange(DOCUMENTS)) > 0.8


@pytest.mark.parametrize("kind", ["ivfpq", "ivfrabitq"])
def test_what_is_deleted_takes_no_place_of_others(build: Any, random_corpus: Any, kind: str) -> None:
    documents, encoded = random_corpus(3_000, seed=5)
    assert encoded.dense is not None
    topic = encoded.dense[0]
    near = topic + 0.3 * encoded.dense[:300]  # a tenth of all lies together, and is deleted together
    dense = np.concatenate([near / np.linalg.norm(near, axis=1, keepdims=True), encoded.dense[300:]])
    corpus = documents, replace(encoded, dense=dense.astype(np.float32))
    collection = build(corpus, dense_kind=kind)
    query = replace(encoded.take(np.array([0])), dense=topic[None])
    options: Any = {
        "top_k": 20,
        "weights": Weights(1, 0, 0),
        "candidates": CandidateLimits(20, 20),
        "dense_options": DenseOptions(nprobe=20),
    }
    with LiveCollection(collection) as live:
        assert len(live.snapshot().search(query, **options).hits) == 20
        live.delete([document.id for document in documents[:300]])
        hits = live.snapshot().search(query, **options).hits
    assert len(hits) == 20
    assert not {hit.document.id for hit in hits} & {document.id for document in documents[:300]}
