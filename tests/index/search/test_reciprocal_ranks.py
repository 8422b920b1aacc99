"""Reciprocal rank fusion of candidates: the answer of brute force, however they lie, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from tercet.index.candidates import CandidateLimits, Cursor, Hit, Page, Weights
from tercet.index.documents.boosts import FilterBoost
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import InvalidQueryError
from tercet.index.snapshot import Snapshot

LIMITS = CandidateLimits(60, 40)
EVEN = FilterBoost(parse_filter({"eq": {"tags": "two"}}), 0.004)


@pytest.fixture(params=[500, 90])
def snapshot(request: pytest.FixtureRequest, build: Any, random_corpus: Any) -> Snapshot:
    """Three hundred documents, of which thirty are alike, in one segment or in four."""
    corpus = random_corpus(300, 5, repeat=30)
    opened: Snapshot = build(corpus, segment=request.param, fields={"tags": "keyword"}).snapshot()
    return opened


def expected(snapshot: Snapshot, query: Any, weights: Weights, boost: float = 0) -> list[tuple[float, str]]:
    """By brute force: scores, negative, and ids; best first."""
    ids, scores = snapshot.score(query, snapshot.retrieve(query, candidates=LIMITS))
    fused = []
    for id, row in zip(ids, scores.tolist(), strict=True):
        parts = [
            weight / (60 + mean_rank(row[side], [other[side] for other in scores.tolist()]))
            for side, weight in enumerate((weights.dense, weights.sparse, weights.colbert))
            if row[side] != 0 and weight
        ]
        document = snapshot.get(id)
        assert document is not None
        if parts:
            fused.append((-round(sum(parts) + boost * ("two" in document.metadata["tags"]), 11), id))
    return sorted(fused)


def mean_rank(score: float, scores: list[float]) -> float:
    """Of all that are alike."""
    ranks = [rank for rank, other in enumerate(sorted(scores, reverse=True), start=1) if other == score]
    return sum(ranks) / len(ranks)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [Weights(), Weights(0.5, 2, 1), Weights(1, 0, 0), Weights(0, 1, 0.3)])
def test_hits_are_those_of_brute_force(snapshot: Snapshot, random_texts: Any, weights: Weights) -> None:
    for seed in range(5):
        query = random_texts(1, 50 + seed)
        for boosts, boost in (((), 0), ((EVEN,), 0.004)):
            whole = expected(snapshot, query, weights, boost)
            for top_k in (1, 10, 1000):
                hits = snapshot.search(
                    query, top_k=top_k, weights=weights, candidates=LIMITS, fusion="rrf", boosts=boosts
                ).hits
                assert [hit.document.id for hit in hits] == [id for _, id in whole[:top_k]]
                assert [-hit.score for hit in hits] == pytest.approx([score for score, _ in whole[:top_k]])


def test_scores_of_the_sides_stay_what_they_are(snapshot: Snapshot, random_texts: Any) -> None:
    query = random_texts(1, 3)
    sums, ranks = (
        {hit.document.id: hit.scores for hit in snapshot.search(query, top_k=1000, fusion=fusion).hits}
        for fusion in ("sum", "rrf")
    )
    assert sums == ranks


def test_pages_are_the_one_long_list(snapshot: Snapshot, random_texts: Any) -> None:
    options: dict[str, Any] = {"candidates": LIMITS, "fusion": "rrf"}
    query = random_texts(1, 4)
    whole = snapshot.search(query, top_k=1000, **options).hits
    behind: list[Hit] = []
    while True:
        after = Cursor(behind[-1].score, behind[-1].document.id) if behind else None
        page = snapshot.search(query, top_k=11, page=Page(after=after), **options).hits
        behind += page
        if not page:
            break
    assert behind == whole
    assert snapshot.search(query, top_k=5, page=Page(offset=20), **options).hits == whole[20:25]
    least = Page(min_score=whole[9].score)
    assert snapshot.search(query, top_k=1000, page=least, **options).hits == [
        hit for hit in whole if hit.score >= whole[9].score
    ]
    best_of = []
    seen = set[str]()
    for hit in whole:
        tags = hit.document.metadata["tags"]
        if not tags or set(tags) - seen:
            best_of.append(hit)
        seen.update(tags)
    assert snapshot.search(query, top_k=1000, group_by="tags", **options).hits == best_of


def test_another_fusion_is_refused(snapshot: Snapshot, random_texts: Any) -> None:
    with pytest.raises(InvalidQueryError, match='fusion is "max"; use sum or rrf'):
        snapshot.search(random_texts(1, 1), fusion="max")  # type: ignore[arg-type]
