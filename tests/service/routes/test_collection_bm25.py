"""BM25 as a fourth side of `POST /search`: asked for, shown, explained, and refused where there is none."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection


@pytest.fixture
def words(data: Path, build: Any, tiny: Any) -> Collection:
    """The collection `words`: that of `demo` with BM25."""
    build(data, tiny, "words", bm25=True)
    return Collection.open(data / "collections", "words")


async def answer(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await client.post("/search", json={"collection": "words", "query": "hot teas", **body})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def refusal(client: httpx.AsyncClient, **body: Any) -> tuple[int, str, str]:
    response = await client.post("/search", json={"collection": "words", "query": "hot teas", **body})
    error = response.json()["error"]
    return response.status_code, error["param"], error["message"]


async def test_it_is_shown_but_not_in_the_sum_unless_asked(
    client: httpx.AsyncClient, words: Collection
) -> None:
    plain = await answer(client)
    assert plain["weights"] == {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 0}
    assert plain["candidates"] == {"dense": 200, "sparse": 200, "bm25": 0}
    demo = await answer(client, collection="demo")
    assert set(demo["weights"]) == {"dense", "sparse", "colbert"}
    assert set(demo["candidates"]) == {"dense", "sparse"}
    for hit, other in zip(plain["hits"], demo["hits"], strict=True):
        assert (hit["id"], hit["score"]) == (other["id"], other["score"])
        assert other["scores"] == {side: hit["scores"][side] for side in ("dense", "sparse", "colbert")}
    assert {hit["id"] for hit in plain["hits"] if hit["scores"]["bm25"] > 0} == {"tea", "black"}


async def test_asked_for_it_is_a_part_of_the_sum(client: httpx.AsyncClient, words: Collection) -> None:
    found = await answer(client, weights={"bm25": 2})
    assert found["weights"] == {"dense": 1, "sparse": 1, "colbert": 1, "bm25": 2}
    assert found["candidates"] == {"dense": 200, "sparse": 200, "bm25": 200}
    for hit in found["hits"]:
        scores = hit["scores"]
        summed = scores["dense"] + scores["sparse"] + scores["colbert"] + 2 * scores["bm25"]
        assert hit["score"] == pytest.approx(summed, abs=3e-6)
    alone = {"dense": 0, "sparse": 0, "colbert": 0, "bm25": 1}
    candidates = {"dense": 0, "sparse": 0, "bm25": 1}
    (hit,) = (await answer(client, weights=alone, candidates=candidates))["hits"]
    assert hit["id"] == "tea"
    assert hit["score"] == hit["scores"]["bm25"]


async def test_an_explanation_has_its_words(client: httpx.AsyncClient, words: Collection) -> None:
    for hit in (await answer(client, explain=True))["hits"]:
        explained = hit["explanation"]["bm25"]
        products = sum(word["product"] for word in explained)
        assert hit["scores"]["bm25"] == pytest.approx(products, abs=5e-6)  # each is rounded
        for word in explained:
            assert word["product"] == pytest.approx(
                0.05 * word["query_count"] * word["idf"] * word["document_weight"], abs=1e-6
            )
        if hit["id"] == "tea":
            assert {word["term"] for word in explained} == {"tea", "hot"}  # stems, as documents have them
    demo = await answer(client, collection="demo", explain=True)
    assert "bm25" not in demo["hits"][0]["explanation"]


async def test_ready_representations_bring_their_text(client: httpx.AsyncClient, words: Collection) -> None:
    embedded = await client.post("/embed", json={"inputs": "hot teas", "input_type": "query"})
    ready = embedded.json()["embeddings"][0]
    weights = {"bm25": 1}
    found = await answer(client, query={**ready, "text": "hot teas"}, weights=weights, explain=True)
    expected = await answer(client, weights=weights, explain=True)
    assert found["hits"] == expected["hits"]
    without = await answer(client, query=ready)
    assert {hit["scores"]["bm25"] for hit in without["hits"]} == {None}
    status, param, message = await refusal(client, query=ready, weights=weights)
    assert (status, param) == (422, "query.text")
    assert "give it, or set weights.bm25 to 0" in message


async def test_the_text_of_a_ready_query_names_its_tokens_where_it_has_as_many(
    client: httpx.AsyncClient, words: Collection
) -> None:
    embedded = await client.post("/embed", json={"inputs": "hot tea", "input_type": "query"})
    ready = embedded.json()["embeddings"][0]
    for text, tokens in (("hot tea", ["hot", "tea", "[SEP]"]), ("teapot of hot green tea", [None] * 3)):
        (hit,) = (await answer(client, query={**ready, "text": text}, top_k=1, explain=True))["hits"]
        assert [token["query_token"] for token in hit["explanation"]["alignment"]] == tokens


async def test_a_collection_without_it_refuses_its_weight(client: httpx.AsyncClient) -> None:
    for body, param in (
        ({"weights": {"bm25": 0.5}}, "weights.bm25"),
        ({"candidates": {"bm25": 5}}, "candidates.bm25"),
    ):
        status, named, message = await refusal(client, collection="demo", **body)
        assert (status, named) == (422, param)
        assert (
            "collection 'demo' has no BM25; leave it out, or create a collection with bm25: true" in message
        )
    fine = {"weights": {"bm25": 0}, "candidates": {"bm25": 0}}
    assert (await answer(client, collection="demo", **fine))["hits"]


async def test_what_is_out_of_range_is_named(client: httpx.AsyncClient, words: Collection) -> None:
    for body, param in (
        ({"weights": {"bm25": -1}}, "weights.bm25"),
        ({"candidates": {"bm25": 10**6}}, "candidates.bm25"),
        ({"candidates": {"dense": 0, "sparse": 0, "bm25": 5}}, "candidates"),
        ({"weights": {"dense": 0, "sparse": 0, "colbert": 0}}, "weights"),
    ):
        status, named, _ = await refusal(client, **body)
        assert (status, named) == (422, param), body


async def test_stored_defaults_may_weigh_it(client: httpx.AsyncClient, words: Collection) -> None:
    stored = SearchDefaults(
        Weights(1, 0, 0, 3), CandidateLimits(9, 8, 7), Tuning("000001", 10, 2, 0, 0.5, 0.6)
    )
    words.store_defaults(stored)
    found = await answer(client, top_k=2)
    assert found["weights"] == {"dense": 1, "sparse": 0, "colbert": 0, "bm25": 3}
    assert found["candidates"] == {"dense": 9, "sparse": 8, "bm25": 7}
    described = (await client.get("/collections/words")).json()
    assert described["defaults"] == {key: found[key] for key in ("weights", "candidates")}
    assert (await answer(client, weights="sum"))["weights"]["bm25"] == 0


async def test_rerank_has_scores_where_the_defaults_weigh_bm25_alone(
    client: httpx.AsyncClient, words: Collection
) -> None:
    only = SearchDefaults(Weights(0, 0, 0, 3), CandidateLimits(9, 8, 7), Tuning("000001", 10, 2, 0, 0.5, 0.6))
    words.store_defaults(only)
    body = {"query": "hot tea", "inputs": ["rail", "tea"], "collection": "words"}
    results = (await client.post("/rerank", json=body)).json()["results"]
    assert [result["index"] for result in results] == [1, 0]
    assert all(result["score"] == pytest.approx(sum(result["scores"].values())) for result in results)


async def test_candidates_of_bm25_alone_need_its_weight(client: httpx.AsyncClient, words: Collection) -> None:
    candidates = {"dense": 0, "sparse": 0, "bm25": 5}
    _, param, message = await refusal(client, candidates=candidates)
    assert param == "candidates"
    assert "candidates.bm25 is 5, but weights.bm25 is 0" in message
    assert "raise weights.bm25" in message
    _, _, message = await refusal(client, candidates={"dense": 0, "sparse": 0})
    assert "0 on all sides" in message


async def test_rerank_has_three_sides(client: httpx.AsyncClient, words: Collection) -> None:
    body = {"query": "hot tea", "inputs": ["tea", "rail"]}
    assert (await client.post("/rerank", json={**body, "weights": {"bm25": 1}})).status_code == 422
    for collection in ({}, {"collection": "words"}):
        answered = await client.post("/rerank", json={**body, **collection})
        for result in answered.json()["results"]:
            assert set(result["scores"]) == {"dense", "sparse", "colbert"}


async def test_it_is_chosen_at_creation(client: httpx.AsyncClient) -> None:
    created = (await client.put("/collections/a", json={"bm25": True})).json()
    assert (created["bm25"], created["bm25_language"]) == (True, "english")
    german = {"bm25": True, "bm25_language": "german"}
    assert {**(await client.put("/collections/b", json=german)).json(), **german} == (
        await client.get("/collections/b")
    ).json()
    plain = (await client.put("/collections/c", json={"bm25": None})).json()
    assert (plain["bm25"], plain["bm25_language"]) == (False, None)
    for body, param in (
        ({"bm25_language": "german"}, "bm25_language"),
        ({"bm25": True, "bm25_language": "klingon"}, "bm25_language"),
        ({"bm25": "yes"}, "bm25"),
    ):
        refused = await client.put("/collections/d", json=body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (422, param)
    assert (await client.get("/collections/d")).status_code == 404
