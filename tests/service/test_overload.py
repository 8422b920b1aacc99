"""Real servers under more work than they can do: who is refused, what it is told, and what is dropped."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tercet.service.app import create_worker_app
from tests.service.polling import pause

pytestmark = pytest.mark.slow

QUERY = {"collection": "demo", "query": "hot tea"}
RERANK = {"query": "hot tea", "inputs": ["green tea", "black tea"]}
LIMIT_SECONDS = 0.3
# More than a busy machine takes to bring requests in, so that they wait, and less than they wait then.
DEADLINE, PATIENCE = 6.0, 60.0

KNOWN = {"inputs": "hot water", "input_type": "query"}  # what a server was asked before

MakeServer = Callable[..., Any]


async def predicted_wait(client: httpx.AsyncClient) -> float:
    """In seconds, of a request that came now."""
    text = (await client.get("/metrics")).text
    (seconds,) = re.findall(r'^tercet_predicted_wait_seconds{kind="documents"} (\S+)$', text, re.M)
    return float(seconds)


@asynccontextmanager
async def stuck(
    url: str, encoder: Any, busy_seconds: float = LIMIT_SECONDS
) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A client of a server whose encoder has been busy with one batch for longer, and a ready query."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        ready = (await client.post("/embed", json=KNOWN)).json()
        encoder.gate.clear()
        try:
            busy = asyncio.create_task(client.post("/embed", json={"inputs": "water"}))
            former, seconds = 0.0, 0.0
            while not busy_seconds < former < seconds:  # it rises once the batch takes longer than expected
                await pause()
                former, seconds = seconds, await predicted_wait(client)
            yield client, ready["embeddings"][0]
        finally:
            encoder.gate.set()
        assert (await busy).status_code == 200


async def test_all_that_would_wait_too_long_is_refused_before_any_work(
    make_server: MakeServer, held: Any
) -> None:
    with make_server(encoder=held, max_wait_seconds=LIMIT_SECONDS) as url:
        async with stuck(url, held) as (client, ready):
            before = sum(held.texts)
            for path, body in [
                ("/embed", {"inputs": "tea"}),
                ("/embed", {"inputs": ["tea"] * 32}),
                ("/search", QUERY),
                ("/rerank", RERANK),
            ]:
                response = await client.post(path, json=body)
                assert response.status_code == 429, path
                assert response.json()["error"]["code"] == "overloaded"
                assert "max_wait_seconds" in response.json()["error"]["message"]
                assert 1 <= int(response.headers["Retry-After"]) <= 60
            sparse = {name: ready["sparse"][name] for name in ("token_ids", "weights")}
            query = {"dense": ready["dense"], "sparse": sparse, "colbert": ready["colbert"]}
            found = await client.post("/search", json={**QUERY, "query": query})
            assert found.status_code == 200  # it needs no encoder
            metrics = (await client.get("/metrics")).text
            assert 'tercet_refused_total{reason="wait"} 4.0' in metrics
            for kind in ("query", "documents"):
                (line,) = [
                    line
                    for line in metrics.splitlines()
                    if line.startswith(f'tercet_predicted_wait_seconds{{kind="{kind}"}}')
                ]
                assert float(line.split()[1]) > LIMIT_SECONDS
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.post("/search", json=QUERY)).status_code == 200
        assert sum(held.texts) == before + 2  # what was in work, and the last search


async def test_a_query_that_is_known_waits_for_no_encoder(make_server: MakeServer, held: Any) -> None:
    with make_server(encoder=held, max_wait_seconds=PATIENCE) as url:
        async with stuck(url, held) as (client, ready):
            before = sum(held.texts)
            answers = [await client.post("/embed", json=KNOWN)]
            answers.append(await client.post("/search", json={**QUERY, "query": KNOWN["inputs"]}))
            assert [answer.status_code for answer in answers] == [200, 200]
            assert answers[0].json()["embeddings"] == [ready]
            assert sum(held.texts) == before


async def test_an_encoder_worker_refuses_alike(make_server: MakeServer, held: Any) -> None:
    with make_server(encoder=held, create=create_worker_app, max_wait_seconds=LIMIT_SECONDS) as url:
        async with stuck(url, held) as (client, _):
            response = await client.post("/embed", json={"inputs": ["tea"] * 32})
            assert (response.status_code, response.json()["error"]["code"]) == (429, "overloaded")


async def test_what_waits_past_its_deadline_is_dropped(make_server: MakeServer, held: Any) -> None:
    with make_server(encoder=held, max_wait_seconds=PATIENCE) as url:
        async with stuck(url, held) as (client, _):
            before = sum(held.texts)
            answers = await asyncio.gather(
                *(
                    client.post(path, json=body, headers={"X-Request-Timeout": f"{DEADLINE}"})
                    for path, body in [
                        ("/embed", {"inputs": ["tea"] * 3}),
                        ("/search", QUERY),
                        ("/rerank", RERANK),
                    ]
                )
            )
            for response in answers:
                assert response.status_code == 429
                assert response.json()["error"]["code"] == "deadline_exceeded"
                assert int(response.headers["Retry-After"]) >= 1
            assert 'tercet_refused_total{reason="deadline"} 3.0' in (await client.get("/metrics")).text
            assert "tercet_queue_tokens 3.0" in (await client.get("/metrics")).text  # the text in work
        assert sum(held.texts) == before + 1  # what was in work


async def test_the_servers_own_time_limit_holds_without_a_header_and_under_a_longer_one(
    make_server: MakeServer, held: Any
) -> None:
    with make_server(encoder=held, request_timeout_seconds=DEADLINE, max_wait_seconds=PATIENCE) as url:
        async with stuck(url, held) as (client, _):
            headers = ({}, {"X-Request-Timeout": "3600"})
            answers = (client.post("/search", json=QUERY, headers=each) for each in headers)
            for response in await asyncio.gather(*answers):
                assert (response.status_code, response.json()["error"]["code"]) == (429, "deadline_exceeded")


async def test_who_has_less_time_than_the_wait_is_told_at_once(make_server: MakeServer, held: Any) -> None:
    with make_server(encoder=held) as url:
        async with stuck(url, held, busy_seconds=2) as (client, _):
            response = await client.post("/search", json=QUERY, headers={"X-Request-Timeout": "1.5"})
            assert (response.status_code, response.json()["error"]["code"]) == (429, "overloaded")
            assert "X-Request-Timeout" in response.json()["error"]["message"]


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", "1e999", ""])
async def test_a_time_limit_that_is_none_is_an_invalid_value(client: httpx.AsyncClient, value: str) -> None:
    for path, body in [("/embed", {"inputs": "tea"}), ("/search", QUERY), ("/rerank", RERANK)]:
        response = await client.post(path, json=body, headers={"X-Request-Timeout": value})
        assert response.status_code == 422
        error = response.json()["error"]
        assert (error["type"], error["param"]) == ("invalid_value", "X-Request-Timeout")


async def test_a_time_limit_is_a_decimal(client: httpx.AsyncClient) -> None:
    for value in ("2.5", "30", "1e3", "1e300"):
        response = await client.post("/search", json=QUERY, headers={"X-Request-Timeout": value})
        assert response.status_code == 200
