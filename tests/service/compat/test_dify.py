"""Dify's external knowledge: the hits of `/search`, in the shape and with the errors that Dify expects."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.collection import Collection
from tercet.service.compat.relevance import relevance

TUNING = Tuning("000001", 20, 5, 0, 0.5, 0.6)
ALL = {"knowledge_id": "demo", "query": "green tea", "retrieval_setting": {"top_k": 10}}


async def records(client: httpx.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    response = await client.post("/dify/retrieval", json={**ALL, **more})
    assert response.status_code == 200, response.text
    return list(response.json()["records"])


async def hits(client: httpx.AsyncClient, **more: Any) -> list[dict[str, Any]]:
    response = await client.post("/search", json={"collection": "demo", "query": "green tea", **more})
    return list(response.json()["hits"])


def condition(name: str, operator: str, value: Any = None) -> dict[str, Any]:
    return {"name": name, "comparison_operator": operator, "value": value}


async def test_records_are_the_hits_with_a_relevance(client: httpx.AsyncClient) -> None:
    found, expected = await records(client), await hits(client)
    assert [one["metadata"]["document_id"] for one in found] == [one["id"] for one in expected]
    assert [one["score"] for one in found] == [relevance(one["score"]) for one in expected]
    assert [one["content"] for one in found] == [one["text"] for one in expected]
    assert [one["title"] for one in found] == [one["title"] or one["id"] for one in expected]
    by_id = {one["metadata"]["document_id"]: one for one in found}
    assert by_id["tea"]["metadata"] == {"document_id": "tea", "year": 2001, "kind": "drink"}
    assert all(isinstance(one["metadata"], dict) for one in found), "null breaks Dify"


async def test_a_document_of_another_system_keeps_its_own_id(client: httpx.AsyncClient) -> None:
    documents = [{"id": "a", "text": "green tea", "metadata": {"document_id": "7"}}]
    await client.put("/collections/other", json={})
    await client.put("/collections/other/documents", json={"documents": documents})
    (one,) = await records(client, knowledge_id="other")
    assert one["metadata"] == {"document_id": "7"}


async def test_a_threshold_keeps_records_of_this_score_or_more(client: httpx.AsyncClient) -> None:
    every = await records(client)
    assert len(every) > 2
    at = every[1]["score"]
    setting = {"top_k": 10, "score_threshold": at}
    assert await records(client, retrieval_setting=setting) == [one for one in every if one["score"] >= at]
    assert await records(client, retrieval_setting={"top_k": 10, "score_threshold": 1}) == []
    assert await records(client, retrieval_setting={"top_k": 1, "score_threshold": 0.0}) == every[:1]
    # What Dify sends where nothing is set.
    unset = {"retrieval_setting": {"top_k": None, "score_threshold": None}, "metadata_condition": None}
    assert await records(client, **unset) == every
    assert await records(client, metadata_condition={"logical_operator": "and", "conditions": None}) == every


async def test_tuned_weights_order_the_records_and_keep_the_scale(
    client: httpx.AsyncClient, data: Path
) -> None:
    """Twice the weights are the same relevance; others are scaled to weights that add up to three."""
    plain = await records(client)
    for weights, scale in (((2, 2, 2), 1 / 2), ((0.5, 0, 1), 2)):
        stored = SearchDefaults(Weights(*weights), CandidateLimits(10, 10), TUNING)
        Collection.open(data / "collections", "demo").store_defaults(stored)
        named = dict(zip(("dense", "sparse", "colbert"), weights, strict=True))
        found, expected = await records(client), await hits(client, weights=named)
        assert [one["score"] for one in found] == pytest.approx(
            [relevance(one["score"] * scale) for one in expected]
        )
        assert (found == plain) == (weights == (2, 2, 2))


@pytest.mark.parametrize(
    ("conditions", "tree"),
    [
        ([condition("kind", "is", "drink")], {"eq": {"kind": "drink"}}),
        ([condition("kind", "is not", "drink")], {"not": {"eq": {"kind": "drink"}}}),
        ([condition("kind", "in", ["drink", "plant"])], {"in": {"kind": ["drink", "plant"]}}),
        ([condition("kind", "in", "drink")], {"in": {"kind": ["drink"]}}),
        ([condition("kind", "not in", ["drink"])], {"not": {"in": {"kind": ["drink"]}}}),
        ([condition("kind", "empty")], {"not": {"exists": "kind"}}),
        ([condition("kind", "not empty", "")], {"exists": "kind"}),
        ([condition("year", "=", 2001)], {"eq": {"year": 2001}}),
        ([condition("year", "=", "2001")], {"eq": {"year": 2001}}),
        ([condition("year", "≠", 2001)], {"not": {"eq": {"year": 2001}}}),
        ([condition("year", ">", "1829.5")], {"gt": {"year": 1829.5}}),
        ([condition("year", "<", 1830)], {"lt": {"year": 1830}}),
        ([condition("year", "≥", 1830)], {"gte": {"year": 1830}}),
        ([condition("year", "≤", 1830)], {"lte": {"year": 1830}}),
        ([condition("year", "before", 1830)], {"lt": {"year": 1830}}),
        ([condition("year", "after", 1830)], {"gt": {"year": 1830}}),
        (
            [condition("kind", "is", "drink"), condition("year", "<", 1900)],
            {"and": [{"eq": {"kind": "drink"}}, {"lt": {"year": 1900}}]},
        ),
    ],
)
async def test_conditions_are_filters(client: httpx.AsyncClient, conditions: Any, tree: Any) -> None:
    found = await records(client, metadata_condition={"logical_operator": "and", "conditions": conditions})
    expected = await hits(client, filter=tree)
    assert [one["metadata"]["document_id"] for one in found] == [one["id"] for one in expected]


async def test_either_of_several_conditions(client: httpx.AsyncClient) -> None:
    conditions = [condition("kind", "is", "plant"), condition("year", "<", 1820)]
    found = await records(client, metadata_condition={"logical_operator": "or", "conditions": conditions})
    assert {one["metadata"]["document_id"] for one in found} == {"leaf", "steam/engine"}


async def test_moments_are_compared(client: httpx.AsyncClient) -> None:
    await client.put("/collections/news", json={"fields": {"at": "datetime"}})
    documents = [
        {"id": "old", "text": "tea", "metadata": {"at": "2024-12-31T23:00:00Z"}},
        {"id": "new", "text": "tea", "metadata": {"at": "2025-06-01T00:00:00Z"}},
    ]
    await client.put("/collections/news/documents", json={"documents": documents})
    for operator, kept in (("before", "old"), ("after", "new")):
        asked = {"conditions": [condition("at", operator, "2025-01-01T00:00:00Z")]}
        (one,) = await records(client, knowledge_id="news", metadata_condition=asked)
        assert one["metadata"]["document_id"] == kept


async def test_windows_are_the_passages_that_match(client: httpx.AsyncClient) -> None:
    text = "The kettle stands on the stove. " * 40 + "Green tea is brewed with hot water."
    await client.put("/collections/long", json={"window": {"tokens": 32, "overlap": 4}})
    await client.put("/collections/long/documents", json={"documents": [{"id": "a", "text": text}]})
    (one,) = await records(client, knowledge_id="long")
    (hit,) = await hits(client, collection="long")
    assert one["content"] == text[hit["window"]["start"] : hit["window"]["end"]]
    assert len(one["content"]) < len(text)


@pytest.mark.parametrize(
    ("body", "status", "number", "word"),
    [
        ({"knowledge_id": "gone"}, 404, 2001, "gone"),
        ({"query": " "}, 422, 422, "query"),
        ({"query": None}, 422, 422, "query"),
        ({"knowledge_id": "No name"}, 422, 422, "knowledge_id"),
        ({"retrieval_setting": {"top_k": 0}}, 422, 422, "retrieval_setting.top_k"),
        ({"retrieval_setting": {"top_k": 10**6}}, 422, 422, "max_top_k"),
        ({"retrieval_setting": {"score_threshold": 1.5}}, 422, 422, "retrieval_setting.score_threshold"),
    ],
)
async def test_errors_have_difys_shape(
    client: httpx.AsyncClient, body: dict[str, Any], status: int, number: int, word: str
) -> None:
    response = await client.post("/dify/retrieval", json={**ALL, **body})
    assert response.status_code == status
    assert response.json()["error_code"] == number
    assert set(response.json()) == {"error_code", "error_msg"}
    assert word in response.json()["error_msg"]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (condition("kind", "contains", "dri"), 'comparison_operator is "contains"'),
        (condition("kind", "not contains", "dri"), 'comparison_operator is "not contains"'),
        (condition("kind", "start with", "dri"), 'comparison_operator is "start with"'),
        (condition("kind", "end with", "ink"), 'comparison_operator is "end with"'),
        (condition("kind", "near", "x"), "comparison_operator"),
        (condition("kind", "is"), "value is missing"),
        (condition("kind", "in"), "value is missing"),
        (condition("kind", "is", ["drink"]), "value is a list"),
        (condition("kind", "is", True), "value"),
        (condition("year", ">", "soon"), '"soon"'),
        (condition("year", ">", "nan"), '"nan"'),
        (condition("kind", "is", 7), "kind"),
        (condition("colour", "is", "red"), "colour"),
    ],
)
async def test_conditions_that_filters_cannot_tell_are_refused_by_name(
    client: httpx.AsyncClient, wrong: dict[str, Any], word: str
) -> None:
    conditions = [condition("kind", "is", "drink"), wrong]
    response = await client.post(
        "/dify/retrieval", json={**ALL, "metadata_condition": {"conditions": conditions}}
    )
    assert response.status_code == 422
    assert word in response.json()["error_msg"]


async def test_an_alias_is_knowledge(client: httpx.AsyncClient) -> None:
    await client.put("/aliases/current", json={"collection": "demo"})
    assert await records(client, knowledge_id="current") == await records(client)


async def test_keys_and_their_collections(make_client: Any, tmp_path: Path) -> None:
    """Dify looks for 403 alone when an endpoint is registered, by a request without a body."""
    keys = tmp_path / "keys.jsonl"
    keys.write_text(json.dumps({"key": "one", "access": "read", "collections": ["demo"]}) + "\n")
    async with make_client(keys_file=keys) as client:
        for headers, number in (({}, 1001), ({"Authorization": "Bearer other"}, 1002)):
            refused = await client.post("/dify/retrieval", headers=headers)
            assert (refused.status_code, refused.json()["error_code"]) == (403, number)
        known = {"Authorization": "Bearer one"}
        assert (await client.post("/dify/retrieval", headers=known)).status_code == 400
        assert (await client.post("/dify/retrieval", headers=known, json=ALL)).status_code == 200
        other = await client.post("/dify/retrieval", headers=known, json={**ALL, "knowledge_id": "secret"})
        assert (other.status_code, other.json()["error_code"]) == (403, 1002)
        assert "secret" in other.json()["error_msg"]
