"""Encoder workers over HTTP: real servers, some of them dead, strange or busy."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import numpy as np
import pytest

from tercet.models.encoder import encode, with_adapter
from tercet.models.errors import (
    AdapterNotFoundError,
    AdapterNotServedError,
    AdapterUnusableError,
    EncoderUnavailableError,
    TextTooLongError,
    UnsupportedError,
)
from tercet.service.app import create_app, create_worker_app
from tercet.service.encoding.options import TextOptions
from tercet.service.exceptions import OverloadedError, RequestTooLargeError
from tercet.service.settings.settings import Settings, WorkerAccess
from tercet.service.workers import encoding as remote_encoding
from tercet.service.workers.encoding import RemoteEncoding
from tests.service.polling import pause


@pytest.fixture
def make_worker(make_server: Any) -> Any:
    """Makes a real encoder worker; options as for `make_app`."""
    return lambda **options: make_server(create=create_worker_app, **options)


@asynccontextmanager
async def connected(*urls: str, **options: Any) -> AsyncIterator[RemoteEncoding]:
    remote = await RemoteEncoding.connect(urls, WorkerAccess(**options))
    try:
        yield remote
    finally:
        await remote.close()


@pytest.mark.slow
async def test_a_deadline_goes_on_to_the_worker(make_worker: Any, held: Any, data: Any) -> None:
    with make_worker(encoder=held) as url:
        app = create_app(Settings(data=data, encoder_urls=url, max_wait_seconds=60))
        async with app.router.lifespan_context(app), asgi_client(app) as client:
            while (await client.get("/ready")).status_code != 200:
                await pause()
            held.gate.clear()
            try:
                busy = asyncio.create_task(client.post("/embed", json={"inputs": "water"}))
                while not busy_tokens(await metrics_of(url)):
                    await pause()
                before = sum(held.texts)
                body = {"collection": "demo", "query": "hot tea"}
                late = await client.post("/search", json=body, headers={"X-Request-Timeout": "4"})
                assert (late.status_code, late.json()["error"]["code"]) == (429, "deadline_exceeded")
                assert int(late.headers["Retry-After"]) >= 1
                assert 'refused_total{reason="deadline"} 1.0' in await metrics_of(url)
            finally:
                held.gate.set()
            assert (await busy).status_code == 200
            assert sum(held.texts) == before + 1


async def metrics_of(url: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/metrics")).text


def busy_tokens(metrics: str) -> float:
    (line,) = [line for line in metrics.splitlines() if line.startswith("tercet_queue_tokens ")]
    return float(line.split()[1])


def requests_of(worker: Any) -> float:
    """How many texts a worker's application has encoded, the one of its warm-up left out."""
    value = worker.state.runtime.telemetry.registry.get_sample_value(
        "tercet_requests_total", {"route": "/embed", "method": "POST", "status": "200"}
    )
    return float(value or 0)


async def test_a_worker_answers_like_its_encoder(make_worker: Any, tiny: Any) -> None:
    texts = ["hot tea", "", "the train " * 40]
    with make_worker() as url:
        async with connected(url) as remote:
            assert remote.info == tiny.info
            assert remote.tokenizer.to_bytes() == tiny.tokenizer.to_bytes()
            assert remote.tokenizer.settings == tiny.tokenizer.settings
            answer = await remote.encode(texts, TextOptions("query"))
            expected = encode(tiny, texts, "query")
            assert np.array_equal(answer.dense, expected.dense)
            assert np.array_equal(answer.sparse.weights, expected.sparse.weights)
            assert np.array_equal(answer.colbert.vectors, expected.colbert.vectors)
            assert np.array_equal(answer.truncated, [False, False, True])
            only = await remote.encode(["tea"], TextOptions("document", ["dense"], max_length=5))
            assert only.sparse is None
            assert only.colbert is None


async def test_half_a_character_is_encoded_as_the_encoder_itself_does(make_worker: Any, tiny: Any) -> None:
    with make_worker() as url:
        async with connected(url) as remote:
            answer = await remote.encode(["tea \ud83d"])
            assert np.array_equal(answer.dense, encode(tiny, ["tea \ud83d"]).dense)


async def test_the_pieces_of_one_request_do_not_fill_a_queue(
    make_worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_encoding, "PIECE_TEXTS", 5)
    with make_worker(queue_tokens=20) as url:  # room for one piece of five times three tokens
        async with connected(url) as remote:
            assert len(await remote.encode(["tea"] * 50)) == 50


async def test_refusals_of_a_worker_are_raised_as_they_are(make_worker: Any) -> None:
    with make_worker(max_request_tokens=20) as url:
        async with connected(url) as remote:
            with pytest.raises(TextTooLongError, match="text 1"):
                await remote.encode(["tea", "tea " * 20], TextOptions(max_length=10, truncate=False))
            with pytest.raises(RequestTooLargeError, match="at most 20"):
                await remote.encode(["tea"] * 10)
            with pytest.raises(UnsupportedError, match="max_length"):
                await remote.encode(["tea"], TextOptions(max_length=1))
            assert len(await remote.encode(["tea"])) == 1


async def test_work_is_shared_and_a_dead_worker_is_skipped(
    make_app: Any, dead_url: str, tiny: Any, serve: Any
) -> None:
    workers = [make_app(create=create_worker_app) for _ in range(2)]
    with serve(workers[0]) as first, serve(workers[1]) as second:
        async with connected(dead_url, first, second) as remote:
            for _ in range(8):
                answer = await remote.encode(["tea"])
                assert np.array_equal(answer.dense, encode(tiny, ["tea"]).dense)
    assert [requests_of(worker) for worker in workers] == [4, 4]


async def test_a_large_request_is_split_over_the_workers(
    make_app: Any, serve: Any, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_encoding, "PIECE_TEXTS", 5)
    workers = [make_app(create=create_worker_app) for _ in range(2)]
    texts = [" ".join(["tea"] * (n % 7)) for n in range(23)]
    with serve(workers[0]) as first, serve(workers[1]) as second:
        async with connected(first, second) as remote:
            answer = await remote.encode(texts)
    assert np.array_equal(answer.dense, encode(tiny, texts).dense)
    assert sorted(requests_of(worker) for worker in workers) == [2, 3]


async def test_pieces_are_bounded_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_encoding, "PIECE_CHARACTERS", 10)
    pieces = remote_encoding._pieces(["a" * 6, "b" * 4, "c", "d" * 50, "e"])
    assert [list(map(len, piece)) for piece in pieces] == [[6, 4], [1], [50], [1]]


async def test_another_checkpoint_among_the_workers_is_refused(make_worker: Any, tiny: Any) -> None:
    other = type(tiny)(seed=1)
    with make_worker() as first, make_worker(encoder=other) as second:
        async with connected(first, second) as remote:
            for _ in range(4):
                answer = await remote.encode(["tea"])
                assert np.array_equal(answer.dense, encode(tiny, ["tea"]).dense)
            assert other.info.fingerprint in remote._workers[1].server.circuit.fault


async def test_keys_are_sent_and_a_wrong_one_is_told(make_worker: Any) -> None:
    with make_worker(api_keys="worker-key") as url:
        async with connected(url, key="worker-key") as remote:
            assert len(await remote.encode(["tea"])) == 1
        with pytest.raises(EncoderUnavailableError, match="encoder_key"):
            await RemoteEncoding.connect([url], WorkerAccess(key="wrong"))


async def test_no_worker_is_an_error_that_names_each(dead_url: str) -> None:
    with pytest.raises(EncoderUnavailableError, match=dead_url):
        await RemoteEncoding.connect([dead_url], WorkerAccess())


@contextmanager
def serving_bytes(body: bytes) -> Iterator[str]:
    """The address of a server that answers everything with these bytes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b'{"encoder": {"name": 1}}'])
async def test_what_is_no_worker_is_refused(body: bytes) -> None:
    with (
        serving_bytes(body) as url,
        pytest.raises(EncoderUnavailableError, match="not that of a tercet"),
    ):
        await RemoteEncoding.connect([url], WorkerAccess())


async def test_an_odd_worker_is_passed_over_for_a_good_one(make_worker: Any, tiny: Any) -> None:
    odd = json.dumps({"encoder": dataclasses.asdict(tiny.info)}).encode()
    with serving_bytes(odd) as first, make_worker() as second:
        async with connected(first, second) as remote:
            assert len(await remote.encode(["tea"])) == 1
            assert "not that of a tercet encoder" in remote._workers[0].server.circuit.fault


async def test_workers_with_adapters(make_worker: Any, tiny: Any) -> None:
    with make_worker() as url:
        async with connected(url) as remote:
            assert await remote.adapters() == tiny.describe_adapters()
            assert await remote.info_of("law") == tiny.adapter_info("law")
            found = await remote.encode(["hot tea"], TextOptions(adapter="law"))
            assert np.array_equal(found.dense, encode(with_adapter(tiny, "law"), ["hot tea"]).dense)
            assert np.array_equal((await remote.encode(["hot tea"])).dense, encode(tiny, ["hot tea"]).dense)
            with pytest.raises(AdapterNotFoundError, match="no adapter 'lore'; there are law, tea"):
                await remote.encode(["hot tea"], TextOptions(adapter="lore"))


@pytest.mark.slow
async def test_a_worker_without_the_adapter_or_with_another_is_passed_over(
    make_worker: Any, tiny: Any
) -> None:
    texts, law = ["hot tea"], with_adapter(tiny, "law")
    changed = type(tiny)(adapters=("laa", "law"))
    with (
        make_worker(encoder=type(tiny)(adapters=())) as bare,
        make_worker(encoder=changed) as odd,
        ExitStack() as stack,
    ):
        good = stack.enter_context(make_worker())
        async with connected(good, bare, odd) as remote:
            for _ in range(3):
                assert np.array_equal(
                    (await remote.encode(texts, TextOptions(adapter="law"))).dense, encode(law, texts).dense
                )
            assert all(remote.states.values())
            for _ in range(3):
                assert np.array_equal((await remote.encode(texts)).dense, encode(tiny, texts).dense)
            stack.close()
            with pytest.raises((AdapterUnusableError, AdapterNotFoundError)):
                await remote.encode(texts, TextOptions(adapter="law"))
            assert len(await remote.encode(texts)) == 1


async def test_an_adapter_that_the_workers_cannot_use(make_worker: Any, tiny: Any) -> None:
    with make_worker(encoder=type(tiny)(adapters=("worn",))) as url:
        async with connected(url) as remote:
            with pytest.raises(AdapterNotServedError, match="adapter 'worn' cannot be used: it is damaged"):
                await remote.encode(["tea"], TextOptions(adapter="worn"))


async def test_documents_may_be_longer_than_the_texts_of_requests(make_worker: Any, tiny: Any) -> None:
    text = "tea " * 100
    with make_worker(max_characters=10) as url:
        async with connected(url) as remote:
            answer = await remote.encode([text])
            assert np.array_equal(answer.dense, encode(tiny, [text]).dense)


async def test_a_busy_worker_is_passed_over_and_told_when_all_are(make_worker: Any, held: Any) -> None:
    with make_worker(encoder=held, queue_tokens=5) as busy, make_worker() as free:
        async with connected(busy) as only_busy, connected(busy, free) as both:
            held.gate.clear()
            occupying = asyncio.create_task(only_busy.encode(["tea tea"]))
            async with httpx.AsyncClient() as client:
                while "tercet_queue_tokens 4.0" not in (await client.get(f"{busy}/metrics")).text:
                    await pause()
            with pytest.raises(OverloadedError) as error:
                await only_busy.encode(["tea"])
            assert error.value.retry_after_seconds >= 1
            assert len(await both.encode(["tea"])) == 1
            assert len(await both.encode(["tea"])) == 1
            held.gate.set()
            assert len(await occupying) == 1


@pytest.mark.slow
async def test_a_worker_that_does_not_answer_in_time_is_skipped(
    make_worker: Any, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_worker(encoder=held) as slow, make_worker() as quick:
        async with connected(slow, quick) as remote:
            held.gate.clear()
            monkeypatch.setattr(remote._workers[0], "_access", WorkerAccess(timeout_seconds=0.5))
            assert len(await remote.encode(["tea"])) == 1
            assert len(await remote.encode(["tea"])) == 1
            held.gate.set()


async def test_a_search_server_over_workers(
    make_worker: Any, data: Any, make_client: Any, dead_url: str
) -> None:
    query = {"collection": "demo", "query": "hot tea"}
    async with make_client() as client:
        local = (await client.post("/search", json=query)).json()["hits"]
    async with AsyncExitStack() as stack:
        with make_worker() as url:
            app = create_app(Settings(data=data, encoder_urls=f"{dead_url},{url}", encoder_probe_seconds=0.1))
            await stack.enter_async_context(app.router.lifespan_context(app))
            remote = await stack.enter_async_context(asgi_client(app))
            while (await remote.get("/ready")).status_code != 200:
                await pause()
            assert (await remote.post("/search", json=query)).json()["hits"] == local
            explained = (await remote.post("/search", json={**query, "explain": True})).json()["hits"]
            assert explained[0]["explanation"]["terms"]
            metrics = (await remote.get("/metrics")).text
            assert f'tercet_encoder_worker_up{{url="{url}"}} 1.0' in metrics
            assert f'tercet_encoder_worker_up{{url="{dead_url}"}} 0.0' in metrics
        while (await remote.get("/ready")).status_code == 200:
            await pause()
        assert (await remote.post("/search", json=query)).json()["hits"] == local  # its query is known
        new = {**query, "query": "hot water"}
        for response in (await remote.post("/search", json=new), await remote.get("/ready")):
            assert response.status_code == 503
            assert response.json()["error"]["code"] == "encoder_unavailable"
            assert url not in response.text
        assert f'tercet_encoder_worker_up{{url="{url}"}} 0.0' in (await remote.get("/metrics")).text


def asgi_client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
