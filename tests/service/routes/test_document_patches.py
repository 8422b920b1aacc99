"""Patches and updates of documents' metadata, by id and by filter."""

from typing import Any

import httpx

from tests.service.routes.test_document_routes import DEMO, error_of, found, put


async def test_a_patch_replaces_metadata_alone(client: httpx.AsyncClient) -> None:
    before = await found(client, "hot tea")
    changed = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": 1999, "note": "x"}})
    assert changed.json() == {"position": 1}
    got = (await client.get(f"{DEMO}/tea")).json()
    assert (got["title"], got["metadata"]) == ("green tea", {"year": 1999, "note": "x"})
    assert await found(client, "hot tea") == before
    assert await found(client, "hot tea", filter={"eq": {"year": 1999}}) == {"tea": before["tea"]}
    missing = await client.patch(f"{DEMO}/none", json={"metadata": {}})
    assert (missing.status_code, error_of(missing)["code"]) == (404, "document_not_found")
    assert (await client.patch(f"{DEMO}/{'x' * 600}", json={"metadata": {}})).status_code == 404
    wrong = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": "old"}})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")
    assert (await client.patch(f"{DEMO}/tea", json={})).status_code == 422


async def test_a_patch_may_be_merged(client: httpx.AsyncClient) -> None:
    await client.patch(f"{DEMO}/tea", json={"metadata": {"year": 1999, "note": "x", "by": {"a": 1, "b": 2}}})
    changes = {
        "year": None,
        "by": {"a": None, "c": {"d": 3, "e": None}},
        "note": {"text": "y"},
        "tags": ["t", None],
    }
    changed = await client.patch(f"{DEMO}/tea", json={"metadata": changes, "merge": True})
    assert changed.json() == {"position": 2}
    got = (await client.get(f"{DEMO}/tea")).json()["metadata"]
    assert got == {"note": {"text": "y"}, "by": {"b": 2, "c": {"d": 3}}, "tags": ["t", None]}
    assert (await client.post(f"{DEMO}/count", json={"filter": {"eq": {"year": 1999}}})).json() == {
        "count": 0
    }
    wrong = await client.patch(f"{DEMO}/tea", json={"metadata": {"year": "old"}, "merge": True})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")
    key = {"metadata": {"n": 1}, "idempotency_key": "m"}
    assert (await client.patch(f"{DEMO}/tea", json={**key, "merge": True})).status_code == 200
    other = await client.patch(f"{DEMO}/tea", json=key)
    assert (other.status_code, error_of(other)["code"]) == (409, "idempotency_key_reused")


async def test_documents_are_changed_by_ids_and_by_filter(client: httpx.AsyncClient) -> None:
    async def change(body: Any) -> Any:
        return (await client.post(f"{DEMO}/update", json=body)).json()

    before = await found(client, "hot tea")
    body = {"ids": ["tea", "none", "", "rail"], "metadata": {"note": "x"}, "merge": True}
    assert await change(body) == {"updated": 2, "position": 1}
    body = {"filter": {"lt": {"year": 1900}}, "metadata": {"year": 1999}}
    assert await change(body) == {"updated": 2, "position": 2}
    assert await change(body) == {"updated": 0, "position": 2}
    several = (await client.post(f"{DEMO}/get", json={"ids": ["tea", "rail"]})).json()["documents"]
    assert several[0]["metadata"]["note"] == "x"
    assert several[1]["metadata"] == {"year": 1999}
    assert await found(client, "hot tea") == before
    keyed = {"ids": ["tea"], "metadata": {}, "idempotency_key": "u"}
    assert await change(keyed) == await change(keyed) == {"updated": 1, "position": 3}
    for wrong, param in (
        ({"metadata": {}}, "ids"),
        ({"ids": ["a"], "filter": {"exists": "year"}, "metadata": {}}, "ids"),
        ({"ids": ["a"]}, "metadata"),
        ({"filter": {"exists": "colour"}, "metadata": {}}, "filter"),
    ):
        response = await client.post(f"{DEMO}/update", json=wrong)
        assert (response.status_code, error_of(response)["param"]) == (422, param)
    wrong = await client.post(f"{DEMO}/update", json={"ids": ["tea"], "metadata": {"year": "old"}})
    assert (wrong.status_code, error_of(wrong)["code"]) == (422, "invalid_document")


async def test_if_position_refuses_what_was_changed_since(client: httpx.AsyncClient) -> None:
    await put(client, {"id": "tea", "text": "first"}, if_position=0)
    stale = await client.put(DEMO, json={"documents": [{"id": "tea", "text": "second"}], "if_position": 0})
    assert (stale.status_code, error_of(stale)["code"]) == (409, "document_changed")
    late = await client.patch(f"{DEMO}/tea", json={"metadata": {}, "if_position": 0})
    assert late.status_code == 409
    assert (await client.get(f"{DEMO}/tea")).json()["text"] == "first"
    assert (await put(client, {"id": "tea", "text": "third"}, if_position=1))["position"] == 2
    assert (await put(client, {"id": "unknown", "text": "fourth"}, if_position=0))["position"] == 3
    fresh = await client.patch(f"{DEMO}/tea", json={"metadata": {}, "if_position": 2})
    assert fresh.json() == {"position": 4}
