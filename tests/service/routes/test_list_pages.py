"""Lists page by page: put together, the pages are the whole list."""

from pathlib import Path
from typing import Any

import httpx
import pytest


async def pages(client: httpx.AsyncClient, path: str, limit: int) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    found: list[list[dict[str, Any]]] = []
    params: dict[str, Any] = {"limit": limit}
    while True:
        answer = (await client.get(path, params=params)).json()
        assert set(answer) == {path.rpartition("/")[2], "next"}
        found.append(answer[path.rpartition("/")[2]])
        if answer["next"] is None:
            return found
        params["after"] = answer["next"]


async def whole(client: httpx.AsyncClient, path: str) -> list[dict[str, Any]]:
    """A list without parameters, as it was before there were pages."""
    answer = (await client.get(path)).json()
    (items,) = answer.values()
    return list(items)


@pytest.fixture
async def filled(client: httpx.AsyncClient, data: Path) -> httpx.AsyncClient:
    """A server with five of everything."""
    (data / "sources").mkdir()
    (data / "sources" / "tea.jsonl").write_text('{"id": "a", "text": "tea"}\n')
    for number in range(4):
        assert (await client.put(f"/collections/c-{number}")).status_code == 201
    for number in range(5):
        assert (await client.put(f"/aliases/a-{number}", json={"collection": "c-0"})).is_success
        assert (await client.post("/collections/demo/backups")).status_code == 201
        # Of a collection that is there: one that is made in the background would join the list.
        assert (await client.post("/collections/c-0/jobs", json={"source": "tea.jsonl"})).status_code == 202
    return client


LISTS = ("/collections", "/aliases", "/jobs", "/collections/demo/backups")


@pytest.mark.parametrize("path", LISTS)
async def test_pages_are_the_list_in_order(filled: httpx.AsyncClient, path: str) -> None:
    def named(items: list[dict[str, Any]]) -> list[str]:
        return [item.get("id") or item.get("alias") or item["name"] for item in items]

    everything = named(await whole(filled, path))
    assert len(everything) >= 5
    for limit in (1, 2, len(everything), 1000):
        found = await pages(filled, path, limit)
        assert [name for page in found for name in named(page)] == everything
        assert all(len(page) == limit for page in found[:-1])
    after = (await filled.get(path, params={"after": everything[1]})).json()
    assert named(after[path.rpartition("/")[2]]) == everything[2:]
    behind = (await filled.get(path, params={"after": everything[-1]})).json()
    assert behind == {path.rpartition("/")[2]: [], "next": None}


async def test_a_page_follows_what_is_gone(filled: httpx.AsyncClient) -> None:
    first = (await filled.get("/collections", params={"limit": 2})).json()
    assert (await filled.delete(f"/collections/{first['collections'][1]['name']}")).status_code == 204
    second = (await filled.get("/collections", params={"limit": 2, "after": first["next"]})).json()
    assert second["collections"][0]["name"] > first["next"]
    path = "/collections/demo/backups"
    first = (await filled.get(path, params={"limit": 2})).json()
    assert (await filled.delete(f"{path}/{first['next']}")).status_code == 204
    second = (await filled.get(path, params={"limit": 9, "after": first["next"]})).json()
    assert len(second["backups"]) == 3


@pytest.mark.parametrize(
    ("path", "params", "param"),
    [
        *((path, {"limit": limit}, "limit") for path in LISTS for limit in ("0", "1001", "all")),
        ("/jobs", {"after": "unknown"}, "after"),
        ("/collections", {"after": ""}, "after"),
        ("/aliases", {"page": "2"}, "page"),
    ],
)
async def test_what_is_no_page_is_422(
    client: httpx.AsyncClient, path: str, params: dict[str, str], param: str
) -> None:
    answer = await client.get(path, params=params)
    assert (answer.status_code, answer.json()["error"]["param"]) == (422, param)
