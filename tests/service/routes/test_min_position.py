"""Reads that wait for what was written up to a position."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.models.encoder import Encoder, encode

DEMO = "/collections/demo/documents"
TEA = {"documents": [{"id": "tea", "text": "hot tea"}]}


def reads(position: Any, collection: str = "demo") -> list[tuple[str, str, dict[str, Any]]]:
    """Every route that takes a position."""
    query = {"params": {"min_position": str(position)}}
    search = {"collection": collection, "query": "tea", "min_position": position}
    documents = f"/collections/{collection}/documents"
    return [
        ("POST", "/search", {"json": search}),
        ("POST", f"{documents}/count", {"json": {"min_position": position}}),
        ("POST", f"{documents}/get", {"json": {"ids": ["tea"], "min_position": position}}),
        ("GET", documents, query),
        ("GET", f"{documents}/tea", query),
    ]


async def test_a_position_that_was_acknowledged_is_there(client: httpx.AsyncClient) -> None:
    position = (await client.put(DEMO, json=TEA)).json()["position"]
    for given in (position, str(position), 0):
        for method, path, options in reads(given):
            answer = await client.request(method, path, **options)
            assert answer.status_code == 200, answer.text


async def test_one_that_no_write_has_yet_is_told_at_once(client: httpx.AsyncClient) -> None:
    position = (await client.put(DEMO, json=TEA)).json()["position"]
    for method, path, options in reads(position + 1):
        answer = await client.request(method, path, **options)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "position_ahead")
        assert f"is at position {position}, and min_position is {position + 1}" in answer.text


@pytest.mark.parametrize("given", ["3.17.2", "", "-1", "1.", "x", "9" * 25])
async def test_another_text_is_no_position(client: httpx.AsyncClient, given: str) -> None:
    for method, path, options in reads(given):
        answer = await client.request(method, path, **options)
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["param"] == "min_position"


@pytest.mark.parametrize("given", [-1, 2**63, 1.5, True, [3]])
async def test_another_value_is_no_position(client: httpx.AsyncClient, given: Any) -> None:
    for method, path, options in reads(given)[:3]:
        answer = await client.request(method, path, **options)
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["param"] == "min_position"


async def test_an_alias_of_several_has_no_position(client: httpx.AsyncClient) -> None:
    fields = {"year": "integer", "kind": "keyword"}
    made = await client.put("/collections/more", json={"fields": fields, "window": False})
    assert made.status_code == 201
    alias = await client.put("/aliases/both", json={"collections": ["demo", "more"]})
    assert alias.status_code == 200, alias.text
    answer = await client.post("/search", json={"collection": "both", "query": "tea", "min_position": 1})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "alias_of_several")


@pytest.fixture
def foreign(data: Path, tiny: Encoder) -> Collection:
    """A collection that the server does not write."""
    demo = Collection.open(data / "collections", "demo").settings
    settings = CollectionSettings(
        "foreign",
        demo.encoder,
        demo.fingerprint,
        demo.dense_dimension,
        demo.colbert_dimension,
        demo.vocabulary_size,
    )
    return Collection.create(data / "collections", "foreign", settings)


async def test_what_nobody_writes_is_not_waited_for(client: httpx.AsyncClient, foreign: Collection) -> None:
    for method, path, options in reads(1, "foreign"):
        answer = await client.request(method, path, **options)
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "position_ahead")


async def test_what_another_process_writes_is_waited_for(
    client: httpx.AsyncClient, foreign: Collection, tiny: Encoder, data: Path
) -> None:
    source = Collection.open(data / "collections", "demo").snapshot()
    document = source.page(None, 1)[0]
    encoded = encode(tiny, [document.encoded_text])
    with LiveCollection(foreign) as live:
        waiting = asyncio.create_task(
            client.post("/collections/foreign/documents/count", json={"min_position": 1})
        )
        late = await client.post(
            "/collections/foreign/documents/count",
            json={"min_position": 1},
            headers={"X-Request-Timeout": "0.05"},
        )
        assert (late.status_code, late.json()["error"]["code"]) == (503, "position_not_reached")

        def write() -> None:
            live.put([document], encoded)
            live.flush()

        await asyncio.to_thread(write)
        answer = await waiting
    assert (answer.status_code, answer.json()) == (200, {"count": 1})
