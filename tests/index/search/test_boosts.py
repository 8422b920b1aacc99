"""Boosts are part of the sum of every candidate: answers are those of brute force, however candidates lie."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Cursor, Document, Hit, Page, Weights
from tercet.index.collection import Collection
from tercet.index.documents.boosts import Boost, DecayBoost, FilterBoost
from tercet.index.documents.filters import parse_filter
from tercet.index.errors import InvalidQueryError
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.index.windows.settings import WindowSettings

pytestmark = pytest.mark.slow

FIELDS = {"published": "datetime", "price": "number", "tags": "keyword"}
ORIGIN = datetime(2026, 1, 1, tzinfo=UTC)
BOOSTS: list[Boost] = [
    FilterBoost(parse_filter({"eq": {"tags": "new"}}), 0.75),
    FilterBoost(parse_filter({"not": {"exists": "price"}}), -0.3),
    DecayBoost("published", "exp", "2026-01-01", "30d", 1.0, "5d"),
    DecayBoost("price", "gauss", 20, 8.5, 0.5),
    DecayBoost("price", "linear", 50.0, 10, -0.4, 2, 0.25),
]
SOME = CandidateLimits(150, 120)
ALL = CandidateLimits(20_000, 20_000)


def boosted(count: int, seed: int) -> list[Document]:
    """Documents that have each field or not, prices one or two, with ids in no order."""
    random = np.random.default_rng(seed)
    documents = []
    for name in random.permutation(count).tolist():
        metadata: dict[str, Any] = {}
        if random.random() < 0.8:
            metadata["published"] = (ORIGIN - timedelta(hours=int(random.integers(-500, 4000)))).isoformat()
        if random.random() < 0.8:
            prices = random.uniform(0, 80, random.integers(1, 3))
            metadata["price"] = [round(float(price), 2) for price in prices]
        if random.random() < 0.7:
            metadata["tags"] = [tag for tag in ("new", "old") if random.random() < 0.3]
        documents.append(Document(f"d{name:05d}", "text", metadata=metadata))
    return documents


def boost_by_hand(metadata: Any) -> int:
    """What BOOSTS add, in millionths."""
    added = [0.75 * ("new" in metadata.get("tags", [])), -0.3 * ("price" not in metadata)]
    if "published" in metadata:
        away = abs(datetime.fromisoformat(metadata["published"]) - ORIGIN) / timedelta(days=1)
        added.append(0.5 ** (max(0, away - 5) / 30))
    if "price" in metadata:
        away = min(abs(price - 20) for price in metadata["price"])
        spread = -(8.5**2) / (2 * math.log(0.5))
        added.append(0.5 * math.exp(-(away**2) / (2 * spread)))
        slope = 10 / (1 - 0.25)
        away = min(abs(price - 50) for price in metadata["price"])
        added.append(-0.4 * max(0, (slope - max(0, away - 2)) / slope))
    return sum(round(one * 1e6) for one in added)


def expected_order(snapshot: Snapshot, query: Any, limits: CandidateLimits) -> list[tuple[int, str]]:
    """By brute force over all candidates: minus the sum, in millionths, and id; best first."""
    ids, scores = snapshot.score(query, snapshot.retrieve(query, candidates=limits))
    steps = np.rint(scores * 1e6).astype(np.int64)
    ordered = []
    for id, row in zip(ids, steps.tolist(), strict=True):
        if any(row):
            document = snapshot.get(id)
            assert document is not None
            ordered.append((-sum(row) - boost_by_hand(document.metadata), id))
    return sorted(ordered)


def told(hits: list[Hit]) -> list[tuple[int, str]]:
    return [(-round(hit.score * 1e6), hit.document.id) for hit in hits]


@pytest.fixture(params=["one", "many", "codes"])
def snapshot(request: pytest.FixtureRequest, build: Any, random_texts: Any) -> Snapshot:
    """Ten thousand documents in one segment, in several, and with token vectors as small codes."""
    encoded = random_texts(10_000, 3, 4)
    changes: dict[str, Any] = {}
    if request.param == "codes":
        vectors = encoded.colbert.vectors
        changes = {"token_codec": "residual4", "codebook": train_codebook(vectors, 4)}
    segment = 3000 if request.param == "many" else 250_000
    built = build((boosted(10_000, 1), encoded), segment=segment, fields=FIELDS, **changes)
    opened: Snapshot = built.snapshot()
    return opened


@pytest.mark.parametrize("limits", [SOME, ALL])
def test_hits_are_those_of_brute_force(
    snapshot: Snapshot, random_texts: Any, limits: CandidateLimits
) -> None:
    moved = 0
    for seed in range(4):
        query = random_texts(1, 100 + seed)
        expected = expected_order(snapshot, query, limits)
        for top_k in (1, 10, 100):
            hits = snapshot.search(query, top_k=top_k, candidates=limits, boosts=BOOSTS).hits
            assert told(hits) == expected[:top_k]
        plain = snapshot.search(query, top_k=10, candidates=limits).hits
        assert all(hit.scores.boost is None for hit in plain)
        moved += [hit.document.id for hit in plain] != [id for _, id in expected[:10]]
    assert moved


def test_scores_show_what_was_added(snapshot: Snapshot, random_texts: Any) -> None:
    query = random_texts(1, 7)
    hits = snapshot.search(query, top_k=30, weights=Weights(0.5, 2, 1), boosts=BOOSTS).hits
    parts = snapshot.boosts_of([hit.document.id for hit in hits], BOOSTS)
    for place, hit in enumerate(hits):
        scores = hit.scores
        assert scores.boost == pytest.approx(boost_by_hand(hit.document.metadata) / 1e6, abs=1e-9)
        assert scores.boost == round(parts[:, place].sum(), 6)  # without the last bits of a sum
        late = scores.colbert or 0
        assert hit.score == pytest.approx(0.5 * scores.dense + 2 * scores.sparse + late + scores.boost)


def test_pages_groups_and_least_scores_count_the_boost(snapshot: Snapshot, random_texts: Any) -> None:
    query, options = random_texts(1, 8), {"candidates": SOME, "boosts": BOOSTS}
    whole = snapshot.search(query, top_k=1000, **options).hits
    assert told(whole) == expected_order(snapshot, query, SOME)
    behind: list[Hit] = []
    while len(behind) < 40:
        after = Cursor(behind[-1].score, behind[-1].document.id) if behind else None
        behind += snapshot.search(query, top_k=7, page=Page(after=after), **options).hits
    assert behind == whole[: len(behind)]
    assert snapshot.search(query, top_k=7, page=Page(offset=21), **options).hits == whole[21:28]
    least = snapshot.search(query, top_k=1000, page=Page(min_score=whole[11].score), **options).hits
    assert told(least) == [each for each in told(whole) if each[0] <= told(whole)[11][0]]
    groups, seen = [], set[str]()
    for hit in whole:
        tags = hit.document.metadata.get("tags", [])
        if not tags or set(tags) - seen:
            groups.append(hit)
        seen.update(tags)
    assert snapshot.search(query, top_k=9, group_by="tags", **options).hits == groups[:9]


def test_the_dense_side_alone_is_boosted_over_all_candidates(snapshot: Snapshot, random_texts: Any) -> None:
    query, weights = random_texts(1, 9), Weights(1, 0, 0)
    ids, scores = snapshot.score(query, snapshot.retrieve(query, candidates=SOME))
    sums = {}
    for id, row in zip(ids, np.rint(scores * 1e6).astype(np.int64).tolist(), strict=True):
        document = snapshot.get(id)
        assert document is not None
        sums[id] = row[0] + boost_by_hand(document.metadata)
    best = sorted(sums, key=lambda id: (-sums[id], id))[:5]
    hits = snapshot.search(query, top_k=5, weights=weights, candidates=SOME, boosts=BOOSTS).hits
    assert [hit.document.id for hit in hits] == best


def test_a_document_without_any_score_is_no_hit_for_its_boost(
    build: Any, three: Any, plain_representations: Any
) -> None:
    documents, encoded = three
    snapshot = build((documents, encoded), fields={"year": "integer"}).snapshot()
    boosts = [FilterBoost(parse_filter({"eq": {"year": 2021}}), 5.0)]
    query = plain_representations([[1, 0]], [{}], [[]])
    hits = snapshot.search(query, weights=Weights(1, 0, 0), boosts=boosts).hits
    assert [(hit.document.id, hit.score) for hit in hits] == [("a", 1.0), ("c", 0.5)]  # b: s_dense is 0


def test_live_documents_are_boosted_as_built_ones(
    build: Any, random_texts: Any, root: Any, make_settings: Any
) -> None:
    documents, encoded, query = boosted(300, 2), random_texts(300, 5), random_texts(1, 6)
    built = build((documents, encoded), segment=100, fields=FIELDS).snapshot()
    live = Collection.create(root, "live", make_settings(encoded, "live", fields=FIELDS))
    with LiveCollection(live) as writer:
        writer.put(documents, encoded)
        found = writer.snapshot().search(query, top_k=50, boosts=BOOSTS).hits
    assert found == built.search(query, top_k=50, boosts=BOOSTS).hits
    assert told(found) == expected_order(built, query, CandidateLimits())[:50]


def test_windows_share_the_boost_of_their_document(
    build: Any, windowed_corpus: Any, random_texts: Any, root: Any, make_settings: Any
) -> None:
    documents, encoded, windows = windowed_corpus(60, 1)
    settings = make_settings(encoded, "demo", fields={"year": "integer"}, window=WindowSettings(16, 4))
    collection = Collection.create(root, "demo", settings)
    with collection.writer() as writer:
        writer.add(documents, encoded, windows)
        writer.publish()
    snapshot, query = collection.snapshot(), random_texts(1, 3)
    boosts = [FilterBoost(parse_filter({"gte": {"year": 2004}}), 0.5)]
    plain = snapshot.search(query, top_k=60).hits
    sums = {hit.document.id: hit.score + 0.5 * (hit.document.metadata["year"] >= 2004) for hit in plain}
    found = snapshot.search(query, top_k=60, boosts=boosts).hits
    assert [hit.document.id for hit in found] == sorted(sums, key=lambda id: (-round(sums[id], 9), id))
    assert {hit.document.id: hit.window for hit in found} == {hit.document.id: hit.window for hit in plain}


def test_bad_boosts_are_refused(build: Any, three: Any, three_query: Any) -> None:
    snapshot = build(three, fields={"year": "integer"}).snapshot()
    with pytest.raises(InvalidQueryError, match=r"boosts.0: .*'month' is not declared"):
        snapshot.search(three_query, boosts=[DecayBoost("month", "exp", 1, 1, 0.1)])
