"""The dense side over several graphs: each is asked for its share, and for more where that may not be all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits
from tercet.index.dense.index import DenseIndex
from tercet.index.dense.scan import DenseScan
from tercet.index.documents.filters import Filter, parse_filter
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Int64, Representations

SEGMENTS, DOCUMENTS = 3, 3_000  # each segment just large enough for a graph
K = 100


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each search of an index was asked for; segments so small would else be compared whole."""
    monkeypatch.setattr(DenseIndex, "scans_for", lambda *_: False)
    counts: list[int] = []
    real = DenseIndex.without_scan

    def search(self: DenseIndex, query: Any, k: int, *rest: Any) -> Any:
        counts.append(k)
        return real(self, query, k, *rest)

    monkeypatch.setattr(DenseIndex, "without_scan", search)
    return counts


def opened(build: Any, random_corpus: Any, order: Int64, **changes: Any) -> tuple[Snapshot, Representations]:
    """A collection of three graphs, with documents in this order."""
    documents, encoded = random_corpus(DOCUMENTS, seed=4)
    corpus = [documents[row] for row in order.tolist()], encoded.take(order)
    made = build(corpus, segment=DOCUMENTS // SEGMENTS, dense_kind="hnsw", **changes)
    return made.snapshot(), encoded


def found(snapshot: Snapshot, query: Representations, condition: Filter | None = None) -> list[float]:
    """Scores of the dense candidates, the best first."""
    candidates = snapshot.retrieve(query, candidates=CandidateLimits(K, 0), filter=condition)
    return sorted(candidates.dense.tolist(), reverse=True)


def brute_force(encoded: Representations, query: Representations) -> list[float]:
    assert encoded.dense is not None
    assert query.dense is not None
    scores = encoded.dense.astype(np.float16).astype(np.float64) @ query.dense[0].astype(np.float64)
    return sorted(scores.tolist(), reverse=True)[:K]


def test_each_segment_is_asked_for_its_share_where_the_best_are_spread(
    build: Any, random_corpus: Any, random_texts: Any, asked: list[int]
) -> None:
    snapshot, encoded = opened(build, random_corpus, np.arange(DOCUMENTS))
    query = random_texts(1, 9)
    assert found(snapshot, query) == pytest.approx(brute_force(encoded, query), abs=1e-6)
    assert asked == [51] * SEGMENTS  # 100 / 3, and three standard deviations, √(100 / 3) each


@pytest.mark.slow
@pytest.mark.parametrize("ascending", [True, False])
def test_the_best_are_found_where_one_segment_has_them_all(
    build: Any, random_corpus: Any, random_texts: Any, asked: list[int], ascending: bool
) -> None:
    query = random_texts(1, 9)
    _, encoded = random_corpus(DOCUMENTS, seed=4)
    scores = encoded.dense @ query.dense[0]
    order = np.argsort(scores if ascending else -scores)
    snapshot, _ = opened(build, random_corpus, order)
    assert found(snapshot, query) == pytest.approx(brute_force(encoded, query), abs=1e-6)
    assert sorted(asked) == [51, 51, 51, K]


def test_shares_are_of_what_a_filter_allows(
    build: Any, random_corpus: Any, random_texts: Any, asked: list[int]
) -> None:
    documents, encoded = random_corpus(DOCUMENTS, seed=4)
    marked = [
        replace(document, metadata={"side": "left" if row < 1_020 else "right"})
        for row, document in enumerate(documents)
    ]
    made = build(
        (marked, encoded), segment=DOCUMENTS // SEGMENTS, dense_kind="hnsw", fields={"side": "keyword"}
    )
    query = random_texts(1, 9)
    condition = parse_filter({"eq": {"side": "left"}})
    expected = brute_force(encoded.take(np.arange(1_020)), query)
    assert found(made.snapshot(), query, condition) == pytest.approx(expected, abs=1e-6)
    assert asked[:2] == [K, 7]  # 1,000 and 20 of the 1,020 that are allowed; the third is not asked


def test_graphs_that_give_up_are_compared_whole_together(
    build: Any, random_corpus: Any, random_texts: Any, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[int] = []
    real = DenseScan.__init__

    def scan(self: DenseScan, segments: Any, *rest: Any) -> None:
        scanned.append(len(segments))
        real(self, segments, *rest)

    monkeypatch.setattr(DenseScan, "__init__", scan)
    documents, encoded = random_corpus(DOCUMENTS, seed=4)
    query = random_texts(1, 9)
    far = np.argsort(encoded.dense @ query.dense[0])[: DOCUMENTS // 2]
    marked = [
        replace(document, metadata={"side": "far" if row in far else "near"})
        for row, document in enumerate(documents)
    ]
    made = build(
        (marked, encoded), segment=DOCUMENTS // SEGMENTS, dense_kind="hnsw", fields={"side": "keyword"}
    )
    condition = parse_filter({"eq": {"side": "far"}})
    expected = brute_force(encoded.take(far), query)
    assert found(made.snapshot(), query, condition) == pytest.approx(expected, abs=1e-6)
    assert len(asked) == SEGMENTS  # each walk gave up, and no segment was asked again
    assert scanned == [0, SEGMENTS]


def test_fewer_documents_than_wanted_are_all_found(build: Any, random_corpus: Any, random_texts: Any) -> None:
    snapshot, _ = opened(build, random_corpus, np.arange(DOCUMENTS))
    query = random_texts(1, 9)
    limits = CandidateLimits(DOCUMENTS + 1, 0)
    assert len(snapshot.retrieve(query, candidates=limits)) == DOCUMENTS
