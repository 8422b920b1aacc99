"""Aliases over HTTP: second names that go wherever a collection's name does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.candidates import Document
from tercet.index.catalog.aliases import Aliases
from tercet.index.collection import Collection
from tercet.models.encoder import encode
from tercet.service.collections.registry import CollectionRegistry


@pytest.fixture
def other(data: Path, build: Any, tiny: Any) -> None:
    """A second collection, `other`, of one document."""
    build(data, tiny, "other")
    with Collection.open(data / "collections", "other").writer() as writer:
        writer.add([Document("o", "hot tea")], encode(tiny, ["hot tea"]))
        writer.publish()


def alias(name: str, *collections: str) -> dict[str, Any]:
    """An alias as routes tell of it."""
    one = collections[0] if len(collections) == 1 else None
    return {"alias": name, "collection": one, "collections": [*collections]}


async def hits(client: httpx.AsyncClient, name: str) -> list[str]:
    answer = await client.post("/search", json={"collection": name, "query": "tea"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["collection"] == name  # as it was asked for
    return [hit["id"] for hit in answer.json()["hits"]]


async def test_an_alias_is_put_shown_switched_and_removed(other: None, client: httpx.AsyncClient) -> None:
    assert (await client.get("/aliases")).json() == {"aliases": []}
    put = await client.put("/aliases/live", json={"collection": "demo"})
    assert (put.status_code, put.json()) == (200, alias("live", "demo"))
    assert (await client.get("/aliases/live")).json() == put.json()
    assert len(await hits(client, "live")) == 5
    await client.put("/aliases/live", json={"collection": "other"})
    assert await hits(client, "live") == ["o"]
    assert (await client.put("/aliases/again", json={"collection": "live"})).json()["collection"] == "other"
    assert (await client.get("/aliases")).json() == {
        "aliases": [alias("again", "other"), alias("live", "other")]
    }
    assert (await client.delete("/aliases/live")).status_code == 204
    missing = await client.post("/search", json={"collection": "live", "query": "tea"})
    assert missing.json()["error"]["code"] == "collection_not_found"


async def test_an_alias_goes_wherever_a_collections_name_does(client: httpx.AsyncClient, data: Path) -> None:
    await client.put("/aliases/live", json={"collection": "demo"})
    assert (await client.get("/collections/live")).json() == (await client.get("/collections/demo")).json()
    document = await client.get("/collections/live/documents/tea")
    assert document.json()["text"] == "brew tea with hot water"
    ranked = await client.post(
        "/rerank", json={"collection": "live", "query": "tea", "inputs": ["tea", "train"]}
    )
    assert ranked.status_code == 200
    names = [each["name"] for each in (await client.get("/collections")).json()["collections"]]
    assert names == ["demo"]
    document = {"id": "new", "text": "black tea"}
    assert (
        await client.put("/collections/demo/documents", json={"documents": [document]})
    ).status_code == 200
    document["text"] = "green tea"
    put = await client.put("/collections/live/documents", json={"documents": [document]})
    assert (put.status_code, put.json()["position"]) == (200, 2)
    page = (await client.get("/collections/live/documents?limit=1&after=leaf")).json()
    assert page["documents"][0]["text"] == "green tea"
    patched = await client.patch("/collections/live/documents/new", json={"metadata": {"year": 1}})
    assert patched.json()["position"] == 3
    assert (await client.post("/collections/live/merge")).status_code == 202
    stats = await client.get("/collections/live/stats")
    assert (stats.status_code, stats.json()["documents"]) == (200, 6)
    deleted = await client.post("/collections/live/documents/delete", json={"ids": ["new"]})
    assert deleted.json()["deleted"] == 1
    assert (await client.post("/collections/live/backups")).json()["collection"] == "demo"
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    job = await client.post("/collections/live/jobs", json={"source": "tea.jsonl"})
    assert (job.status_code, job.json()["collection"]) == (202, "demo")
    await client.delete(f"/jobs/{job.json()['id']}")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("PUT", "/aliases/new", {"collection": "none"}, 404, "collection_not_found"),
        ("PUT", "/aliases/demo", {"collection": "demo"}, 409, "collection_exists"),
        ("PUT", "/collections/live", None, 409, "collection_exists"),
        ("DELETE", "/collections/demo", None, 409, "collection_aliased"),
        ("DELETE", "/collections/live", None, 409, "collection_aliased"),
        ("GET", "/aliases/none", None, 404, "alias_not_found"),
        ("DELETE", "/aliases/none", None, 404, "alias_not_found"),
        ("GET", "/aliases/demo", None, 404, "alias_not_found"),
        ("PUT", "/aliases/New", {"collection": "demo"}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {"collection": "../demo"}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {}, 422, "missing_field"),
        ("PUT", "/aliases/new", {"collection": "demo", "more": 1}, 422, "unknown_field"),
        ("PUT", "/aliases/new", {"collection": "demo", "collections": ["demo"]}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {"collections": []}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {"collections": ["demo"] * 33}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {"collections": ["demo", "../demo"]}, 422, "invalid_value"),
        ("PUT", "/aliases/new", {"collections": ["demo", "none"]}, 404, "collection_not_found"),
    ],
)
async def test_what_cannot_be_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, method: str, path: str, body: Any, status: int, code: str
) -> None:
    await client.put("/aliases/live", json={"collection": "demo"})
    answer = await client.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await client.get("/aliases")).json()["aliases"] == [alias("live", "demo")]
    assert len(await hits(client, "live")) == 5


async def test_a_key_that_may_read_sees_aliases_and_changes_none(make_client: Any) -> None:
    reader, writer = ({"Authorization": f"Bearer {key}"} for key in ("reader", "writer"))
    async with make_client(reader, api_keys="writer", read_keys="reader") as client:
        body = {"collection": "demo"}
        assert (await client.put("/aliases/live", json=body)).status_code == 403
        assert (await client.put("/aliases/live", json=body, headers=writer)).status_code == 200
        assert (await client.delete("/aliases/live")).status_code == 403
        assert (await client.get("/aliases/live")).json()["collection"] == "demo"


def test_a_switch_by_another_process_counts_at_once(other: None, data: Path) -> None:
    registry, elsewhere = CollectionRegistry(data / "collections"), Aliases(data / "collections")
    elsewhere.put("live", "demo")
    demo = registry.snapshot("live")
    assert registry.snapshot("demo") is demo  # opened once
    elsewhere.put("live", "other")
    assert registry.snapshot("live").documents == 1
    elsewhere.put("live", "demo")
    assert registry.snapshot("live") is demo
    registry.close()


async def test_a_damaged_file_of_aliases_harms_no_collection(client: httpx.AsyncClient, data: Path) -> None:
    (data / "collections" / "aliases.json").write_text("{")
    for path in ("/aliases", "/collections/live"):
        assert (await client.get(path)).json()["error"]["code"] == "damaged_index"
    assert len(await hits(client, "demo")) == 5
