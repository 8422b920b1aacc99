"""What a search uses: explicit values, else a collection's defaults, else 1, 1, 1 and 200 candidates."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.index.languages.sample import LanguageSample
from tercet.index.snapshot import Snapshot
from tercet.service.collections.readable import SearchTarget
from tercet.service.search.defaults import WantedCandidates, candidates_used, rerank_weights, weights_used
from tests.index.conftest import random_representations, settings_for

TUNED = {"dense": 2.0, "sparse": 0.25, "colbert": 0.75}
PLAIN = {"dense": 1.0, "sparse": 1.0, "colbert": 1.0}

Store = Callable[..., None]


def defaults(weights: Weights, candidates: CandidateLimits) -> SearchDefaults:
    return SearchDefaults(weights, candidates, Tuning("000001", 20, 5, 0, 0.5, 0.6))


STORED = defaults(Weights(**TUNED), CandidateLimits(50, 60))


@pytest.fixture
def store(data: Path) -> Store:
    """Stores defaults of `demo`, as another process would."""

    def store(weights: Weights = STORED.weights) -> None:
        Collection.open(data / "collections", "demo").store_defaults(defaults(weights, CandidateLimits(4, 3)))

    return store


def target(stored: SearchDefaults | None = None, *languages: str) -> SearchTarget[Snapshot]:
    """Of a collection without documents, which are taken to be in these languages."""
    snapshot = Snapshot("000001", settings_for(random_representations(1, seed=1), "demo"), [])
    snapshot.known_languages = LanguageSample(np.arange(len(languages), dtype=np.uint64), languages)
    return SearchTarget(snapshot, stored)


def test_weights_wanted_come_first() -> None:
    assert weights_used(Weights(1, 0, 0), target(STORED)) == Weights(1, 0, 0)
    assert weights_used(None, target(STORED)) == Weights(2, 0.25, 0.75)
    assert weights_used(None, target()) == Weights(1, 1, 1)


def test_a_collection_of_two_languages_weighs_terms_less() -> None:
    both = ["en", "ko"] * 20
    assert weights_used(None, target(None, *both)) == Weights(1, round((19 / 39) ** 2, 3), 1)
    assert weights_used(None, target(STORED, *both)) == Weights(2, 0.25, 0.75)
    assert weights_used(Weights(1, 1, 1), target(None, *both)) == Weights(1, 1, 1)


@pytest.mark.parametrize(
    ("wanted", "top_k", "stored", "used"),
    [
        (WantedCandidates(), 10, None, CandidateLimits(200, 200)),
        (WantedCandidates(), 300, None, CandidateLimits(300, 300)),
        (WantedCandidates(), 10, STORED, CandidateLimits(50, 60)),
        (WantedCandidates(), 55, STORED, CandidateLimits(55, 60)),
        (WantedCandidates(0), 10, STORED, CandidateLimits(0, 60)),
        (WantedCandidates(7, 8), 10, STORED, CandidateLimits(7, 8)),
        (WantedCandidates(largest=55), 10, STORED, CandidateLimits(50, 55)),
        (WantedCandidates(largest=30), 10, None, CandidateLimits(30, 30)),
    ],
)
def test_candidates_wanted_come_first(
    wanted: WantedCandidates, top_k: int, stored: SearchDefaults | None, used: CandidateLimits
) -> None:
    assert candidates_used(wanted, top_k, Weights(), stored) == replace(used, bm25=0)


@pytest.mark.parametrize(
    ("offset", "top_k", "wanted", "dense"),
    [
        (190, 10, WantedCandidates(), 200),
        (191, 10, WantedCandidates(), 400),
        (390, 10, WantedCandidates(), 400),
        (400, 10, WantedCandidates(), 800),
        (5, 300, WantedCandidates(), 600),
        (1_000_000, 10, WantedCandidates(largest=10_000), 10_000),
        (500, 10, WantedCandidates(dense=70), 70),
    ],
)
def test_candidates_by_default_are_enough_for_a_page(
    offset: int, top_k: int, wanted: WantedCandidates, dense: int
) -> None:
    assert candidates_used(wanted, top_k, Weights(), None, offset).dense == dense


def test_bm25_proposes_where_it_has_a_weight() -> None:
    weights = Weights(bm25=0.5)
    assert candidates_used(WantedCandidates(), 10, weights, None) == CandidateLimits(200, 200, 200)
    assert candidates_used(WantedCandidates(), 300, weights, STORED) == CandidateLimits(300, 300, 300)
    asked = WantedCandidates(1, 2, 3, largest=2)
    assert candidates_used(asked, 10, weights, None) == CandidateLimits(1, 2, 3)
    assert candidates_used(asked, 10, Weights(), None) == CandidateLimits(1, 2, 0)


def test_defaults_are_read_only_for_what_is_left_open() -> None:
    assert WantedCandidates(1, 2).complete(Weights())
    assert not WantedCandidates(1, 2).complete(Weights(bm25=1))
    assert WantedCandidates(1, 2, 3).complete(Weights(bm25=1))
    assert not WantedCandidates(1, None, 3).complete(Weights())


async def search(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"collection": "demo", "query": "hot tea", **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_search_uses_what_is_stored_and_says_so(client: httpx.AsyncClient, store: Store) -> None:
    before = await search(client)
    assert (before["weights"], before["candidates"]) == (PLAIN, {"dense": 200, "sparse": 200})
    store()
    after = await search(client, top_k=1)
    assert (after["weights"], after["candidates"]) == (TUNED, {"dense": 4, "sparse": 3})
    assert (
        after["hits"]
        == (await search(client, top_k=1, weights=TUNED, candidates={"dense": 4, "sparse": 3}))["hits"]
    )
    scores = after["hits"][0]["scores"]
    assert after["hits"][0]["score"] == pytest.approx(sum(TUNED[s] * scores[s] for s in TUNED), abs=1e-6)
    nothing = dict.fromkeys(["weights", "candidates"])
    assert (await search(client, top_k=1, **nothing))["weights"] == TUNED


async def test_explicit_values_win(client: httpx.AsyncClient, store: Store) -> None:
    store()
    assert (await search(client, weights="sum"))["weights"] == PLAIN
    assert (await search(client, weights={"sparse": 0}))["weights"] == {**PLAIN, "sparse": 0}
    found = await search(client, candidates={"dense": 2})
    assert (found["weights"], found["candidates"]) == (TUNED, {"dense": 2, "sparse": 10})  # 10 hits asked for


async def test_a_change_by_another_process_is_seen_by_the_next_search(
    client: httpx.AsyncClient, store: Store, data: Path
) -> None:
    for weights in (Weights(3, 0, 0), Weights(0, 3, 0)):
        store(weights)
        found = (await search(client))["weights"]
        assert found == {"dense": weights.dense, "sparse": weights.sparse, "colbert": 0}
    Collection.open(data / "collections", "demo").remove_defaults()
    assert (await search(client))["weights"] == PLAIN


async def test_a_ready_query_lacks_no_side_that_the_defaults_weigh(
    client: httpx.AsyncClient, store: Store
) -> None:
    store(Weights(0, 3, 0))
    embedded = await client.post("/embed", json={"inputs": "hot tea", "outputs": ["sparse"]})
    body = {"query": {"sparse": embedded.json()["embeddings"][0]["sparse"]}, "candidates": {"dense": 0}}
    assert (await search(client, **body))["hits"][0]["id"] == "tea"
    refused = await client.post("/search", json={"collection": "demo", "weights": "sum", **body})
    assert (refused.status_code, refused.json()["error"]["param"]) == (422, "query.dense")


async def test_a_collection_shows_its_defaults(client: httpx.AsyncClient, store: Store) -> None:
    assert (await client.get("/collections/demo")).json()["defaults"] is None
    store()
    shown = {"weights": TUNED, "candidates": {"dense": 4, "sparse": 3}}
    assert (await client.get("/collections/demo")).json()["defaults"] == shown
    assert (await client.get("/collections")).json()["collections"][0]["defaults"] == shown
    assert (await client.delete("/collections/demo")).status_code == 204
    assert (await client.put("/collections/demo")).json()["defaults"] is None


async def test_what_is_used_is_told_stored_or_not(client: httpx.AsyncClient, store: Store) -> None:
    async def used(name: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.get(f"/collections/{name}/defaults")).json()
        found = await search(client, collection=name, top_k=1)
        assert {side: answer[side] for side in ("weights", "candidates")} == {
            side: found[side] for side in ("weights", "candidates")
        }
        return answer

    assert await used("demo") == {
        "weights": PLAIN,
        "candidates": {"dense": 200, "sparse": 200},
        "stored": False,
    }
    store()
    assert await used("demo") == {"weights": TUNED, "candidates": {"dense": 4, "sparse": 3}, "stored": True}
    texts = (
        "The train to the sea leaves every morning at seven from here.",
        "바다로 가는 기차는 매일 아침 일곱 시에 여기에서 떠납니다.",
    )
    documents = [{"id": f"{n}", "text": texts[n % 2]} for n in range(40)]
    await client.put("/collections/both", json={"bm25": True})
    assert (await used("both"))["weights"] == {**PLAIN, "bm25": 0}
    written = await client.put("/collections/both/documents", json={"documents": documents})
    assert written.status_code == 200, written.text
    assert (await used("both"))["weights"] == {**PLAIN, "sparse": round((19 / 39) ** 2, 3), "bm25": 0}


async def test_damaged_defaults_are_503_for_what_needs_them(client: httpx.AsyncClient, data: Path) -> None:
    (data / "collections" / "demo" / "defaults.json").write_text("{}")
    for response in (
        await client.post("/search", json={"collection": "demo", "query": "hot tea"}),
        await client.get("/collections/demo"),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (503, "damaged_index")
    given = {"weights": "sum", "candidates": {"dense": 5, "sparse": 5}, "include": ["scores"]}
    assert (await search(client, **given))["weights"] == PLAIN


async def test_defaults_that_weigh_what_the_collection_lacks_are_damage(
    client: httpx.AsyncClient, store: Store, data: Path
) -> None:
    store(Weights(1, 1, 1, 3))
    for response in (
        await client.post("/search", json={"collection": "demo", "query": "hot tea"}),
        await client.get("/collections/demo"),
    ):
        assert (response.status_code, response.json()["error"]["code"]) == (503, "damaged_index")


def test_texts_have_no_bm25_score() -> None:
    only = defaults(Weights(0, 0, 0, 3), CandidateLimits())
    assert rerank_weights(target(only)) == rerank_weights(target()) == Weights()
    assert rerank_weights(target(STORED)) == STORED.weights
