"""Candidates of both retrievers over all segments: each side's limit, exact scores, ties by id."""

from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.search import retrieval
from tercet.index.search.exact_scores import Candidates
from tercet.index.search.retrieval import ids_at
from tercet.index.snapshot import Snapshot


def proposed(snapshot: Snapshot, found: Candidates) -> dict[str, tuple[float, float]]:
    """Dense and lexical score of each candidate, by id."""
    every = np.arange(len(found))
    names = ids_at(snapshot._opened(), found.segments, found.rows, every).take(every)
    ids = [name.decode() for name in names]
    scores = zip(found.dense.tolist(), found.sparse.tolist(), strict=True)
    return dict(zip(ids, scores, strict=True))


@pytest.mark.parametrize("segment", [1, 2, 3])
def test_each_side_proposes_its_best_over_all_segments(
    build: Any, three: Any, three_query: Any, segment: int
) -> None:
    snapshot = build(three, segment=segment).snapshot()
    best = {"a": (1.0, 1.0), "c": (0.5, 2.5), "b": (0.0, 0.0)}
    for limits, expected in (((2, 1), "ac"), ((2, 0), "ac"), ((1, 0), "a"), ((0, 1), "c"), ((3, 1), "abc")):
        found = snapshot.retrieve(three_query, candidates=CandidateLimits(*limits))
        assert proposed(snapshot, found) == {id: best[id] for id in expected}


@pytest.mark.parametrize("segment", [4, 100])
def test_of_equal_documents_the_first_ids_are_proposed(build: Any, random_corpus: Any, segment: int) -> None:
    documents, encoded = random_corpus(20, seed=5, repeat=12)
    snapshot = build((documents, encoded), segment=segment).snapshot()
    query = encoded.take(np.array([0]))  # the content that the first twelve share
    found = proposed(snapshot, snapshot.retrieve(query, candidates=CandidateLimits(3, 0)))
    assert sorted(found) == sorted(document.id for document in documents[:12])[:3]


@pytest.mark.parametrize("segment", [1, 10])
def test_hits_of_the_dense_side_alone_are_the_first_ids_of_equal_rounded_scores(
    build: Any, three: Any, plain_representations: Any, segment: int
) -> None:
    documents, _ = three
    # 0.5, 0.50000024 and 0.499: b has the most, but its score is a's once both are rounded.
    corpus = plain_representations([[0.5, 0], [0.5, 1], [0.499, 0]], [{1: 1.0}] * 3, [[[1, 0]]] * 3)
    query = plain_representations([[1, 2.4e-7]], [{1: 1.0}], [[[1, 0]]])
    snapshot = build((documents, corpus), segment=segment).snapshot()
    for top_k, expected in ((1, "a"), (2, "ab"), (3, "abc")):
        hits = snapshot.search(query, top_k=top_k, weights=Weights(1, 0, 0)).hits
        assert "".join(hit.document.id for hit in hits) == expected
        assert all(hit.scores.sparse == hit.scores.colbert == 1 for hit in hits)


def test_of_equal_scores_and_ids_the_first_segments_are_kept(build: Any, three: Any) -> None:
    copies = [build(three, name=name).snapshot() for name in ("x", "y", "z")]
    segments = [segment for copy in copies for segment in copy.published_segments().values()]
    places, rows = np.array([2, 1, 0, 1, 0, 2]), np.array([1, 1, 1, 0, 0, 0])  # b of each, then a
    scores = np.full(6, 0.5, np.float32)
    for limit, expected in ((1, [(0, 0)]), (2, [(0, 0), (1, 0)]), (4, [(0, 0), (1, 0), (2, 0), (0, 1)])):
        kept = retrieval._cut(places, rows, scores, limit, segments)
        assert sorted(zip(kept.ordinals.tolist(), kept.rows.tolist(), strict=True)) == sorted(expected)
