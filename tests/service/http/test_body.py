"""Limits on bodies and on requests in work, and clients that leave."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

MEGABYTE = b"x" * 2**20


async def stream(pieces: int) -> AsyncIterator[bytes]:
    for _ in range(pieces):
        yield MEGABYTE


async def test_declared_and_streamed_bodies_over_the_limit_are_413(make_client: Any) -> None:
    async with make_client(max_body_bytes=1000) as client:
        for content in (b"x" * 1001, stream(3)):
            response = await client.post(
                "/embed", content=content, headers={"Content-Type": "application/json"}
            )
            assert response.status_code == 413
            assert response.json()["error"]["code"] == "request_too_large"
            assert "1000 bytes" in response.json()["error"]["message"]
        padded = json.dumps({"inputs": "tea"}).encode().ljust(1000)
        response = await client.post("/embed", content=padded, headers={"Content-Type": "application/json"})
        assert response.status_code == 200
        unbelievable = {"Content-Length": "9" * 4000, "Content-Type": "application/json"}
        assert (await client.post("/embed", content=b"{}", headers=unbelievable)).status_code == 413


async def test_a_body_that_does_not_arrive_is_400(make_app: Any) -> None:
    app = make_app(body_timeout_seconds=0.01)
    sent: list[dict[str, Any]] = []

    async def never() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/embed", "headers": [], "query_string": b""}
    await app(scope, never, send)
    assert sent[0]["status"] == 400
    assert json.loads(sent[1]["body"])["error"]["code"] == "incomplete_body"


async def hold(client: httpx.AsyncClient, encoder: Any) -> asyncio.Task[httpx.Response]:
    """A request that occupies the encoder."""
    encoder.gate.clear()
    first = asyncio.create_task(client.post("/embed", json={"inputs": "tea", "outputs": ["dense"]}))
    while "tercet_queue_tokens 3.0" not in (await client.get("/metrics")).text:
        pass
    return first


async def test_more_requests_than_allowed_are_429_but_operations_answer(make_client: Any, held: Any) -> None:
    async with make_client(encoder=held, max_concurrent_requests=1) as client:
        first = await hold(client, held)
        refused = await client.post("/embed", json={"inputs": "tea"})
        assert refused.status_code == 429
        assert refused.headers["Retry-After"] == "1"
        assert (await client.get("/health")).status_code == 200
        held.gate.set()
        assert (await first).status_code == 200


async def test_a_full_queue_is_429_with_retry_after_for_one_text_and_many(
    make_client: Any, held: Any
) -> None:
    async with make_client(encoder=held, queue_tokens=10) as client:
        first = await hold(client, held)
        for inputs in ("tea " * 6, ["tea", "tea", "tea"]):
            refused = await client.post("/embed", json={"inputs": inputs})
            assert refused.status_code == 429
            assert int(refused.headers["Retry-After"]) >= 1
            assert refused.json()["error"]["type"] == "overloaded"
        too_large = await client.post("/embed", json={"inputs": "tea " * 20})
        assert too_large.status_code == 413
        assert "at most 10" in too_large.json()["error"]["message"]
        held.gate.set()
        assert (await first).status_code == 200


def test_texts_of_a_client_that_left_are_not_encoded(make_server: Any, held: Any) -> None:
    with make_server(encoder=held) as url, httpx.Client(base_url=url) as client:
        held.gate.clear()
        for _ in range(3):
            with pytest.raises(httpx.ReadTimeout):
                client.post("/embed", json={"inputs": ["tea"] * 5}, timeout=0.3)
        # The first one's batch is in the encoder already; those of the others never reach it.
        while "tercet_queue_tokens 15.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        held.gate.set()
        assert client.post("/embed", json={"inputs": "tea"}).status_code == 200
    assert held.texts.count(5) == 1


def test_a_server_that_ends_finishes_what_it_accepted(make_server: Any, held: Any) -> None:
    answers = []
    with make_server(encoder=held) as url:
        held.gate.clear()
        clients = [
            threading.Thread(
                target=lambda: answers.append(httpx.post(f"{url}/embed", json={"inputs": "tea"}))
            )
            for _ in range(4)
        ]
        for client in clients:
            client.start()
        while "tercet_queue_tokens 12.0" not in httpx.get(f"{url}/metrics").text:
            time.sleep(0.01)
        threading.Timer(0.3, held.gate.set).start()
    for client in clients:
        client.join(10)
    assert [answer.status_code for answer in answers] == [200] * 4
