"""Limits on requests in work."""

import asyncio
import json
from typing import Any

import httpx

from tests.service.polling import pause

HEAD = ("POST /embed HTTP/1.1", "Content-Type: application/json")
TEA = json.dumps({"inputs": "tea", "outputs": ["dense"]}).encode()


async def hold(client: httpx.AsyncClient, encoder: Any) -> asyncio.Task[httpx.Response]:
    """A request that occupies the encoder."""
    encoder.gate.clear()
    first = asyncio.create_task(client.post("/embed", json={"inputs": "tea", "outputs": ["dense"]}))
    while "tercet_queue_tokens 3.0" not in (await client.get("/metrics")).text:
        await pause()
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
        assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 200


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


def test_requests_whose_bodies_have_not_arrived_take_no_place(
    make_server: Any, connect: Any, held: Any
) -> None:
    with make_server(encoder=held, max_concurrent_requests=1) as url:
        dripped = [connect(url) for _ in range(3)]
        for client in dripped:
            client.send(*HEAD, f"Content-Length: {len(TEA)}", body=TEA[:5])
        quick = connect(url)
        quick.send(*HEAD, f"Content-Length: {len(TEA)}", body=TEA)
        assert quick.answer().status == 200
        held.gate.clear()
        first, second, third = dripped
        first.socket.sendall(TEA[5:])
        quick.send("GET /metrics HTTP/1.1")
        while b"tercet_queue_tokens 3.0" not in quick.answer().body:
            quick.send("GET /metrics HTTP/1.1")
        for client in (second, third):  # the place was taken while their bodies arrived
            client.socket.sendall(TEA[5:])
            answer = client.answer()
            assert (answer.status, answer.code) == (429, "overloaded")
        held.gate.set()
        assert first.answer().status == 200
