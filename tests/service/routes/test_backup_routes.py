"""Backups over HTTP: made beside writes, listed, restored, removed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.verify import verify

BACKUPS = "/collections/demo/backups"


async def put(client: httpx.AsyncClient, id: str, text: str) -> int:
    answer = await client.put("/collections/demo/documents", json={"documents": [{"id": id, "text": text}]})
    assert answer.status_code == 200, answer.text
    position: int = answer.json()["position"]
    return position


async def hits(client: httpx.AsyncClient, name: str = "demo") -> list[Any]:
    """All hits, with every score."""
    answer = await client.post("/search", json={"collection": name, "query": "hot tea", "top_k": 50})
    assert answer.status_code == 200, answer.text
    found: list[Any] = answer.json()["hits"]
    return found


async def back_up(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post(BACKUPS)
    assert answer.status_code == 201, answer.text
    backup: dict[str, Any] = answer.json()
    return backup


async def test_a_backup_is_made_listed_restored_and_removed(client: httpx.AsyncClient, data: Path) -> None:
    position = await put(client, "new", "steam and tea")
    former = await hits(client)
    backup = await back_up(client)
    assert {name: backup[name] for name in ("collection", "position", "documents")} == {
        "collection": "demo",
        "position": position,
        "documents": 6,
    }
    assert backup["size_bytes"] > 0
    assert backup["created_at"].endswith("Z")
    await put(client, "later", "green tea")
    await client.delete("/collections/demo/documents/tea")
    second = await back_up(client)
    assert (await client.get(BACKUPS)).json() == {
        "backups": sorted([backup, second], key=lambda each: str(each["id"]), reverse=True)
    }
    assert await hits(client) != former
    restored = await client.post(f"{BACKUPS}/{backup['id']}/restore")
    assert (restored.status_code, restored.json()["documents"]) == (200, 6)
    assert await hits(client) == former
    await put(client, "after", "black tea")
    assert len(await hits(client)) == 7
    assert verify(data / "collections", "demo") == []
    assert (await client.delete(f"{BACKUPS}/{backup['id']}")).status_code == 204
    assert (await client.get(BACKUPS)).json() == {"backups": [second]}
    assert len(await hits(client)) == 7


@pytest.mark.parametrize("taken_back", ["restored", "made anew", "by an alias that was switched"])
async def test_a_repeat_is_carried_out_where_the_write_was_taken_back(
    client: httpx.AsyncClient, taken_back: str
) -> None:
    await client.put("/aliases/live", json={"collection": "demo"})
    backup = await back_up(client)
    body = {"documents": [{"id": "new", "text": "steam and tea"}], "idempotency_key": "k"}
    assert (await client.put("/collections/live/documents", json=body)).status_code == 200
    restore = f"{BACKUPS}/{backup['id']}/restore"
    if taken_back == "restored":
        await client.post(restore)
    elif taken_back == "made anew":
        await client.delete("/aliases/live")
        assert (await client.delete("/collections/demo")).status_code == 204
        await client.post(restore)
        await client.put("/aliases/live", json={"collection": "demo"})
    else:
        await client.post(restore, json={"name": "other"})
        await client.put("/aliases/live", json={"collection": "other"})
    assert (await client.get("/collections/live/documents/new")).status_code == 404
    assert (await client.put("/collections/live/documents", json=body)).json()["upserted"] == 1
    assert (await client.get("/collections/live/documents/new")).status_code == 200


async def test_a_backup_becomes_another_collection_that_is_written_at_once(
    client: httpx.AsyncClient, data: Path
) -> None:
    await put(client, "new", "steam and tea")
    former, backup = await hits(client), await back_up(client)
    path = f"{BACKUPS}/{backup['id']}/restore"
    restored = await client.post(path, json={"name": "other"})
    assert (restored.status_code, restored.json()["name"]) == (200, "other")
    assert await hits(client, "other") == former
    again = await client.post(path, json={"name": "other"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "collection_exists")
    answer = await client.put(
        "/collections/other/documents", json={"documents": [{"id": "more", "text": "tea"}]}
    )
    assert answer.json()["position"] == backup["position"] + 1
    assert len(await hits(client, "other")) == 7
    assert await hits(client) == former
    assert verify(data / "collections", "other") == []


async def test_backups_outlive_their_collection(client: httpx.AsyncClient) -> None:
    await client.put("/aliases/live", json={"collection": "demo"})
    made = await client.post("/collections/live/backups")
    assert made.json()["collection"] == "demo"
    former = await hits(client)
    await client.delete("/aliases/live")
    assert (await client.delete("/collections/demo")).status_code == 204
    assert (await client.get(BACKUPS)).json() == {"backups": [made.json()]}
    restored = await client.post(f"{BACKUPS}/{made.json()['id']}/restore", json={})
    assert (restored.status_code, restored.json()["documents"]) == (200, 5)
    assert await hits(client) == former


async def test_a_collection_that_was_only_built_is_not_held_by_a_backup(
    client: httpx.AsyncClient, data: Path
) -> None:
    await back_up(client)
    assert not (data / "collections" / "demo" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/collections/none/backups", None, 404, "collection_not_found"),
        ("GET", "/collections/none/backups", None, 404, "collection_not_found"),
        ("POST", f"{BACKUPS}/none/restore", None, 404, "backup_not_found"),
        ("POST", f"{BACKUPS}/20261123t024501-ab12/restore", None, 404, "backup_not_found"),
        ("POST", f"{BACKUPS}/%2e%2e/restore", None, 404, "backup_not_found"),
        ("DELETE", f"{BACKUPS}/none", None, 404, "backup_not_found"),
        ("DELETE", "/collections/none/backups/none", None, 404, "backup_not_found"),
        ("POST", f"{BACKUPS}/ID/restore", {"name": "demo2", "more": 1}, 422, "unknown_field"),
        ("POST", f"{BACKUPS}/ID/restore", {"name": "../demo"}, 422, "invalid_value"),
        ("POST", f"{BACKUPS}/ID/restore", {"name": "live"}, 409, "collection_exists"),
        ("POST", "/collections/Demo/backups", None, 422, "invalid_value"),
    ],
)
async def test_what_cannot_be_is_refused(
    client: httpx.AsyncClient, method: str, path: str, body: Any, status: int, code: str
) -> None:
    await client.put("/aliases/live", json={"collection": "demo"})
    backup = await back_up(client)
    answer = await client.request(method, path.replace("ID", backup["id"]), json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await client.get(BACKUPS)).json() == {"backups": [backup]}
    assert len((await client.get("/collections")).json()["collections"]) == 1


async def test_a_damaged_backup_is_refused_without_paths(client: httpx.AsyncClient, data: Path) -> None:
    backup, former = await back_up(client), await hits(client)
    path = max((data / "backups").rglob("segments/*/*"), key=lambda path: path.stat().st_size)
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    for body in (None, {"name": "other"}):
        answer = await client.post(f"{BACKUPS}/{backup['id']}/restore", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "damaged_index")
        assert str(data) not in answer.text
    assert await hits(client) == former
    assert (await client.get("/collections/other")).status_code == 404


async def test_a_key_that_may_read_lists_backups_and_makes_none(make_client: Any) -> None:
    reader, writer = ({"Authorization": f"Bearer {key}"} for key in ("reader", "writer"))
    async with make_client(reader, api_keys="writer", read_keys="reader") as client:
        assert (await client.post(BACKUPS)).status_code == 403
        backup = (await client.post(BACKUPS, headers=writer)).json()
        assert (await client.get(BACKUPS)).json() == {"backups": [backup]}
        assert (await client.post(f"{BACKUPS}/{backup['id']}/restore")).status_code == 403
        assert (await client.delete(f"{BACKUPS}/{backup['id']}")).status_code == 403
        assert (await client.get(BACKUPS)).json() == {"backups": [backup]}


async def test_a_page_of_another_server_changes_nothing_without_json(make_client: Any) -> None:
    """A browser sends a request without a body from any page; before JSON it asks the server."""
    other, own = {"Origin": "http://localhost:3000"}, {"Origin": "http://localhost"}
    json = {"Content-Type": "application/json"}
    async with make_client() as client:
        backup = (await client.post(BACKUPS)).json()["id"]
        for path in (f"{BACKUPS}/{backup}/restore", BACKUPS):
            refused = await client.post(path, headers=other)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_content_type")
            assert "also without a body" in refused.json()["error"]["message"]
            assert (await client.post(path, headers=other | json)).status_code in (200, 201)
            assert (await client.post(path, headers=own)).status_code in (200, 201)
        assert (await client.get(BACKUPS, headers=other)).status_code == 200


@pytest.mark.slow
async def test_every_route_that_changes_something_asks_pages_of_others_for_a_type_of_its_own(
    make_client: Any,
) -> None:
    async with make_client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
        asked = 0
        for path, methods in paths.items():
            for method in methods:
                if method != "get":
                    url = re.sub(r"{\w+}", "x", path)
                    answer = await client.request(method, url, headers={"Origin": "http://localhost:3000"})
                    assert answer.status_code in (400, 422), (method, path)  # TEI's clients know no 400
                    kind = "octet-stream" if path.endswith("/import") else "json"
                    assert f"Content-Type: application/{kind}" in answer.text, (method, path)
                    asked += 1
        assert asked > 20
