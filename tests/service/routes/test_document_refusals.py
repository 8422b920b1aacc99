"""Writes of documents that are refused, fail or are given up."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from tercet.index.collection import Collection
from tercet.index.errors import StorageFullError, WriteOverloadedError
from tercet.index.live.collection import LiveCollection
from tests.service.polling import pause
from tests.service.routes.test_document_routes import DEMO, error_of, found, listed, put

WRITER = {"Authorization": "Bearer writer"}


async def test_a_batch_is_written_whole_or_not_at_all(client: httpx.AsyncClient) -> None:
    good = {"id": "good", "text": "tea"}
    for bad, param, code in (
        ({"id": "good", "text": "water"}, "documents.1.id", "duplicate_document"),
        (
            {"id": "x", "text": "tea", "metadata": {"year": "old"}},
            "documents.1.metadata.year",
            "invalid_document",
        ),
        ({"id": "x" * 600, "text": "tea"}, "documents.1.id", "invalid_value"),
        ({"id": "é" * 500, "text": "tea"}, "documents.1.id", "invalid_document"),
        ({"id": "", "text": "tea"}, "documents.1.id", "invalid_value"),
        ({"id": "x"}, "documents.1.text", "missing_field"),
        ({"id": "x", "text": None}, "documents.1.text", "invalid_value"),
        ({"id": "x", "text": "tea", "colour": "red"}, "documents.1.colour", "unknown_field"),
        ({"id": "x", "text": "t" * 200_001}, "documents.1.text", "too_many_characters"),
        ({"id": "x", "text": "tea", "title": "t" * 200_001}, "documents.1.title", "too_many_characters"),
    ):
        response = await client.put(DEMO, json={"documents": [good, bad]})
        assert response.status_code == 422, response.text
        assert (error_of(response)["param"], error_of(response)["code"]) == (param, code)
    assert "'good'" in error_of(await client.put(DEMO, json={"documents": [good, good]}))["message"]
    assert (await client.get(f"{DEMO}/good")).status_code == 404
    assert (await put(client, good))["position"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"documents": []},
        {"documents": {"id": "x", "text": "x"}},
        {"documents": [{"id": "x", "text": "x"}], "if_position": -1},
        {"documents": [{"id": "x", "text": "x"}], "if_position": 2**63},
        {"documents": [{"id": "x", "text": "x"}], "idempotency_key": ""},
        {"documents": [{"id": "x", "text": "x"}], "idempotency_key": "é" * 200},
        {"documents": [{"id": 5.5, "text": "x"}]},
        {"documents": [{"id": True, "text": "x"}]},
        {"documents": [{"id": "x", "text": "x", "metadata": [1]}]},
    ],
)
async def test_bad_bodies_are_422(client: httpx.AsyncClient, body: dict[str, Any]) -> None:
    response = await client.put(DEMO, json=body)
    assert response.status_code == 422, response.text
    assert await listed(client) == ["black", "leaf", "rail", "steam/engine", "tea"]


async def test_read_keys_write_nothing(make_client: Any) -> None:
    async with make_client(api_keys="writer", read_keys="reader") as client:
        for method, path, body in (
            ("PUT", DEMO, {"documents": [{"id": "x", "text": "tea"}]}),
            ("PATCH", f"{DEMO}/tea", {"metadata": {}}),
            ("DELETE", f"{DEMO}/tea", None),
            ("POST", f"{DEMO}/delete", {"ids": ["tea"]}),
        ):
            refused = await client.request(
                method, path, json=body, headers={"Authorization": "Bearer reader"}
            )
            assert (refused.status_code, error_of(refused)["code"]) == (403, "read_only_key")
            assert (await client.request(method, path, json=body, headers=WRITER)).status_code in (200, 404)
        reader = {"Authorization": "Bearer reader"}
        assert (await client.get(DEMO, headers=reader)).status_code == 200
        assert (await client.get(f"{DEMO}/rail", headers=reader)).status_code == 200


async def test_limits_are_413_with_the_number(make_client: Any) -> None:
    """Texts are cut at 32 tokens each."""
    async with make_client(max_write_documents=3, max_write_tokens=95) as client:
        many = [{"id": str(n), "text": "tea"} for n in range(4)]
        for response in (
            await client.put(DEMO, json={"documents": many}),
            await client.post(f"{DEMO}/delete", json={"ids": ["a", "b", "c", "d"]}),
        ):
            assert response.status_code == 413
            assert "4 items; the limit is 3 (setting max_write_documents)" in error_of(response)["message"]
        long = [{"id": str(n), "text": "tea " * 40} for n in range(3)]
        refused = await client.put(DEMO, json={"documents": long})
        assert refused.status_code == 413
        assert (
            "has 96 tokens and this server takes at most 95 at once (setting max_write_tokens)"
            in (error_of(refused)["message"])
        )
        assert (await put(client, *long[:2]))["truncated"] == 2
        limits = (await client.get("/info")).json()["limits"]
        assert (limits["write_documents"], limits["write_tokens"]) == (3, 95)


async def test_storage_that_fails_is_told_and_searches_go_on(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(client, {"id": "first", "text": "tea"})
    for error, status, code in (
        (StorageFullError("/secret is full"), 507, "storage_full"),
        (WriteOverloadedError("memory is full"), 429, "overloaded"),
    ):

        def fail(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patched:
            patched.setattr(LiveCollection, "put", fail)
            response = await client.put(DEMO, json={"documents": [{"id": "second", "text": "tea"}]})
            assert (response.status_code, error_of(response)["code"]) == (status, code)
            assert ("Retry-After" in response.headers) == (status == 429)
            assert "secret" not in response.text
            assert "first" in await found(client, "tea")
    assert 'tercet_refused_total{reason="writes"} 1.0' in (await client.get("/metrics")).text
    assert (await put(client, {"id": "second", "text": "tea"}))["position"] == 2


async def test_a_collection_that_another_writes_is_busy(client: httpx.AsyncClient, data: Path) -> None:
    with Collection.open(data / "collections", "demo").writer():
        response = await client.put(DEMO, json={"documents": [{"id": "x", "text": "tea"}]})
        assert (response.status_code, error_of(response)["code"]) == (409, "collection_busy")
        assert len(await found(client, "tea")) == 5
    assert (await put(client, {"id": "x", "text": "tea"}))["position"] == 1


async def test_an_unknown_collection_is_404(client: httpx.AsyncClient) -> None:
    body = {"documents": [{"id": "x", "text": "tea"}]}
    for method, path, content in (
        ("PUT", "", body),
        ("GET", "", None),
        ("GET", "/x", None),
        ("DELETE", "/x", None),
        ("PATCH", "/x", {"metadata": {}}),
        ("POST", "/delete", {"ids": ["x"]}),
    ):
        response = await client.request(method, f"/collections/none/documents{path}", json=content)
        assert (response.status_code, error_of(response)["code"]) == (404, "collection_not_found")


async def test_another_encoder_than_the_collections_is_409(
    make_client: Any, data: Path, build: Any, tiny: Any
) -> None:
    build(data, type(tiny)(seed=1), "foreign")
    async with make_client() as client:
        path = "/collections/foreign/documents"
        refused = await client.put(path, json={"documents": [{"id": "x", "text": "tea"}]})
        assert (refused.status_code, error_of(refused)["code"]) == (409, "fingerprint_mismatch")
        # What needs no encoder goes on.
        assert (await client.patch(f"{path}/tea", json={"metadata": {}})).json() == {"position": 1}
        assert (await client.delete(f"{path}/tea")).json() == {"deleted": 1, "position": 2}


async def test_a_client_that_leaves_in_the_line_writes_nothing(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held) as client:
        held.gate.clear()
        first = asyncio.create_task(put(client, {"id": "first", "text": "tea"}))
        while "tercet_queue_tokens 3.0" not in (await client.get("/metrics")).text:
            await pause()
        second = asyncio.create_task(put(client, {"id": "second", "text": "tea"}))
        while "tercet_queue_tokens 6.0" not in (await client.get("/metrics")).text:
            await pause()
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        held.gate.set()
        assert (await first)["position"] == 1
        assert (await put(client, {"id": "third", "text": "tea"}))["position"] == 2
        assert "second" not in await listed(client)


async def test_a_write_that_has_begun_is_finished_though_its_client_leaves(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()
    write = LiveCollection.put

    def slow(*values: Any, **options: Any) -> Any:
        begun.set()
        assert gate.wait(60)
        return write(*values, **options)

    monkeypatch.setattr(LiveCollection, "put", slow)
    leaving = asyncio.create_task(put(client, {"id": "left", "text": "tea"}))
    while not begun.is_set():
        await pause()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    gate.set()
    while (await client.get(f"{DEMO}/left")).status_code != 200:
        await pause()


async def test_memory_for_writes_is_bounded(make_client: Any) -> None:
    async with make_client(unpublished_documents=2) as client:
        many = [{"id": str(n), "text": "tea"} for n in range(3)]
        refused = await client.put(DEMO, json={"documents": many})
        assert (refused.status_code, error_of(refused)["code"]) == (413, "request_too_large")
        assert (await put(client, *many[:2]))["position"] == 1
