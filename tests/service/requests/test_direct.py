"""Routes that the edge calls directly answer as through FastAPI."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tercet.service.requests.direct import DirectRoutes
from tercet.service.routes import shard

BODIES = {
    "/search": {"collection": "demo", "query": "hot tea"},
    "/embed": {"inputs": ["hot tea", "water"]},
    "/rerank": {"query": "hot tea", "inputs": ["green tea", "water"]},
    "/v2/rerank": {"model": "tiny", "query": "hot tea", "documents": ["green tea", "water"]},
    "/tei/embed": {"inputs": "hot tea"},
    "/tei/rerank": {"query": "hot tea", "texts": ["green tea", "water"]},
    "/jina/v1/rerank": {"model": "tiny", "query": "hot tea", "documents": ["green tea", "water"]},
}
PADDING = " " * 70_000  # of large bodies, which FastAPI reads


def told(answer: httpx.Response) -> Any:
    """What does not differ from one time to the next."""
    value = answer.json()
    for key in ("took_ms", "id", "meta"):
        value.pop(key, None) if isinstance(value, dict) else None
    for result in value.get("results", ()) if isinstance(value, dict) else ():
        result.pop("took_ms", None)
    return value


@pytest.mark.parametrize("path", BODIES)
async def test_an_answer_is_that_of_the_framework(make_app: Any, make_client: Any, path: str) -> None:
    assert ("POST", path) in DirectRoutes(make_app().state.records.routes).fixed
    async with make_client() as client:
        headers = {"Content-Type": "application/json"}
        body = json.dumps(BODIES[path])
        for timeout in ({}, {"X-Request-Timeout": "20"}):
            direct = await client.post(path, content=body, headers={**headers, **timeout})
            framed = await client.post(path, content=body + PADDING, headers={**headers, **timeout})
            assert (direct.status_code, framed.status_code) == (200, 200)
            assert told(direct) == told(framed)
            assert set(direct.headers) == set(framed.headers)
        wrong = await client.post(path, content=body[:-1], headers=headers)
        assert wrong.status_code in (400, 422)
        missing = await client.post(path, json={})
        assert missing.status_code == 422


async def test_only_routes_without_parameters_of_their_own_are_called_directly(make_app: Any) -> None:
    """A key that may write, a path or a query are the framework's to judge, but for those of shards."""
    routes = DirectRoutes(make_app().state.records.routes)
    paths = {path for _, path in routes.fixed}
    assert "/embed" in paths
    assert not [
        path for path in paths if "{" in path or path.startswith(("/collections", "/aliases", "/jobs"))
    ]
    assert set(routes.named) == {("POST", "/shard/collections", operation) for operation in shard.OPERATIONS}


async def test_a_search_wakes_the_loop_once(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads hand it on from its body to its answer."""
    loop, woken = asyncio.get_running_loop(), list[Any]()
    wake = loop.call_soon_threadsafe

    def counted(callback: Any, *args: Any, **options: Any) -> Any:
        woken.append(callback)
        return wake(callback, *args, **options)

    await client.post("/search", json=BODIES["/search"])
    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    for _ in range(20):
        assert (await client.post("/search", json=BODIES["/search"])).status_code == 200
    assert 20 <= len(woken) < 30  # and a few for what a server does beside


@pytest.mark.parametrize(
    "body",
    [
        {"collection": "demo", "queries": ["hot tea", "water", "tea"]},
        {"collection": "demo", "query": "hot tea", "facets": {}, "explain": True},
        {"collection": "demo", "query": {"id": "tea"}},
        {"collection": "none", "query": "hot tea"},
        {"collection": "demo", "query": " "},
        {"collection": "demo", "query": "hot tea", "top_k": 10**6},
    ],
)
async def test_searches_of_any_kind_are_answered_as_by_the_framework(client: Any, body: Any) -> None:
    content, headers = json.dumps(body), {"Content-Type": "application/json"}
    direct = await client.post("/search", content=content, headers=headers)
    framed = await client.post("/search", content=content + PADDING, headers=headers)
    assert direct.status_code == framed.status_code
    assert told(direct) == told(framed)
