"""Workers whose answers cannot be used: never stored, never a wrong score, never blamed on clients."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import load, save

from tercet.models.encoder import encode
from tercet.models.errors import EncoderFailedError, EncoderUnavailableError
from tercet.service.app import create_app, create_worker_app
from tercet.service.exceptions import OverloadedError
from tercet.service.remote.circuit import ServerState
from tercet.service.settings.settings import Settings, WorkerAccess
from tercet.service.telemetry.metrics import Telemetry
from tercet.service.workers.encoding import RemoteEncoding
from tests.service.polling import pause

Change = Callable[[bytes], bytes]
ACCESS = WorkerAccess(timeout_seconds=60, probe_seconds=60, probe_timeout_seconds=60)


class Garbling:
    """A real worker behind this answers `/embed` with what `change` makes of its bodies."""

    def __init__(self, app: Any, wire: dict[str, Any]) -> None:
        self._app = app
        self._wire = wire

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != self._wire.get("path", "/embed"):
            await self._app(scope, receive, send)
            return
        self._wire["requests"] = self._wire.get("requests", 0) + 1
        plain = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        scope = {**scope, "headers": plain}
        start: dict[str, Any] = {}
        body = b""

        async def gather(message: Any) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                change = self._wire.get("change")
                content = body if change is None else change(body)
                headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
                start["headers"] = [*headers, (b"content-length", str(len(content)).encode())]
                start.update(self._wire.get("start", {}))
                await send(start)
                await send({"type": "http.response.body", "body": content})

        await self._app(scope, receive, gather)


@pytest.fixture
def garbling(make_app: Any, serve: Any) -> Any:
    """Starts a worker that garbles; gives its address and what steers it."""
    with ExitStack() as stack:

        def start() -> tuple[str, dict[str, Any]]:
            wire: dict[str, Any] = {}
            app = make_app(create=create_worker_app)
            app.middleware_stack = Garbling(app.middleware_stack, wire)
            return stack.enter_context(serve(app)), wire

        yield start


def arrays(**changes: Callable[[Any], Any]) -> Change:
    """Changes some arrays of a body; None leaves one out."""

    def change(body: bytes) -> bytes:
        header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
        found = load(body)
        for name, make in changes.items():
            made = make(found.pop(name))
            if made is not None:
                found[name] = np.ascontiguousarray(made)
        return save(found, header["__metadata__"])

    return change


def metadata(**values: str) -> Change:
    def change(body: bytes) -> bytes:
        header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
        return save(load(body), {**header["__metadata__"], **values})

    return change


def first(value: float) -> Callable[[Any], Any]:
    """Puts a value where the array begins."""

    def change(array: Any) -> Any:
        copy = array.copy()
        copy.reshape(-1)[:1] = value
        return copy

    return change


GARBAGE: dict[str, Change] = {
    "no bytes": lambda _: b"",
    "no safetensors": lambda _: b"\xff" * 100,
    "JSON": lambda _: b'{"embeddings": []}',
    "a body cut short": lambda body: body[:-1],
    "dense NaN": arrays(dense=lambda a: a * np.float32(np.nan)),
    "dense infinite": arrays(dense=first(np.inf)),
    "dense zero": arrays(dense=lambda a: a * 0),
    "dense of length 7": arrays(dense=lambda a: a * 7),
    "dense of other dimension": arrays(dense=lambda a: a[:, :4]),
    "dense of one axis": arrays(dense=lambda a: a[0]),
    "dense of doubles": arrays(dense=lambda a: a.astype(np.float64)),
    "dense of more texts": arrays(dense=lambda a: np.concatenate([a, a])),
    "dense missing": arrays(dense=lambda _: None),
    "token vectors NaN": arrays(colbert=first(np.nan)),
    "token vectors of length 7": arrays(colbert=lambda a: a * 7),
    "token vectors of other dimension": arrays(colbert=lambda a: a[:, :2]),
    "token vectors fewer": arrays(colbert=lambda a: a[:-1]),
    "token vectors' offsets fall": arrays(colbert_offsets=lambda a: a[::-1]),
    "token vectors' offsets beyond": arrays(colbert_offsets=lambda a: a + 5),
    "token vectors' offsets missing": arrays(colbert_offsets=lambda _: None),
    "ids negative": arrays(sparse_token_ids=first(-1)),
    "ids beyond": arrays(sparse_token_ids=lambda a: a + 1000),
    "ids of floats": arrays(sparse_token_ids=lambda a: a.astype(np.float32)),
    "ids twice": arrays(sparse_token_ids=lambda a: a * 0),
    "weights NaN": arrays(sparse_weights=first(np.nan)),
    "weights infinite": arrays(sparse_weights=first(np.inf)),
    "weights negative": arrays(sparse_weights=lambda a: -a),
    "weights zero": arrays(sparse_weights=lambda a: a * 0),
    "weights fewer": arrays(sparse_weights=lambda a: a[:-1]),
    "indptr beyond": arrays(sparse_indptr=lambda a: a + 1),
    "indptr of another count": arrays(sparse_indptr=lambda a: a[:1]),
    "indptr of floats": arrays(sparse_indptr=lambda a: a.astype(np.float32)),
    "tokens negative": arrays(tokens=lambda a: -a),
    "tokens beyond the limit": arrays(tokens=lambda a: a + 10**9),
    "tokens of floats": arrays(tokens=lambda a: a.astype(np.float32)),
    "tokens of no texts": arrays(tokens=lambda a: a[:0]),
    "tokens of two axes": arrays(tokens=lambda a: a[None]),
    "truncated of numbers": arrays(truncated=lambda a: a.astype(np.int64)),
    "truncated missing": arrays(truncated=lambda _: None),
    "routes of no weights": metadata(routes='[{"adapters": ["law"], "weights": []}]'),
    "routes of NaN": metadata(routes='[{"adapters": ["law"], "weights": [NaN]}]'),
    "routes deep": metadata(routes="[" * 100_000),
}


@asynccontextmanager
async def connected(*urls: str) -> AsyncIterator[RemoteEncoding]:
    remote = await RemoteEncoding.connect(urls, ACCESS)
    try:
        yield remote
    finally:
        await remote.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", GARBAGE)
async def test_garbage_is_refused_and_another_worker_asked(garbling: Any, tiny: Any, kind: str) -> None:
    (bad, wire), (good, _) = garbling(), garbling()
    wire["change"] = GARBAGE[kind]
    async with connected(bad) as remote:
        with pytest.raises(EncoderFailedError):
            await remote.encode(["hot tea"])
    wire["requests"] = 0
    async with connected(bad, good) as remote:
        for _ in range(2):
            answer = await remote.encode(["hot tea"])
            assert np.array_equal(answer.dense, encode(tiny, ["hot tea"]).dense)
    assert wire["requests"] >= 1


async def test_a_worker_of_garbage_is_used_again_once_it_is_sound(garbling: Any) -> None:
    url, wire = garbling()
    wire["change"] = GARBAGE["dense NaN"]
    async with connected(url) as remote:
        with pytest.raises(EncoderFailedError):
            await remote.encode(["hot tea"])
        (worker,) = remote._workers
        assert worker.server.circuit.state is ServerState.SUSPECTED
        await worker.server.probe()
        assert worker.server.circuit.state is ServerState.DOWN
        with pytest.raises(EncoderUnavailableError, match="length nan"):
            await remote.check()
        wire["change"] = None
        await worker.server.probe()
        assert worker.server.circuit.state is ServerState.UP
        assert len(await remote.encode(["hot tea"])) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (422, [], b'{"error": {"code": "invalid_value", "param": "inputs", "message": "no"}}'),
        (422, [], b'{"error": {"code": "text_too_long", "message": "no"}}'),
        (400, [], b'{"error": {"code": "invalid_json", "message": "no"}}'),
        (422, [], b"[" * 100_000),
        (403, [], b'{"error": {"code": ["x"], "param": {}, "message": 5}}'),
        (301, [(b"location", b"/elsewhere")], b""),
        (204, [], b""),
    ],
)
async def test_no_client_is_blamed(garbling: Any, status: int, headers: Any, body: bytes) -> None:
    url, wire = garbling()
    async with connected(url) as remote:
        length = [(b"content-length", str(len(body)).encode())] if status != 204 else []
        wire |= {"start": {"status": status, "headers": [*headers, *length]}, "change": lambda _: body}
        with pytest.raises(EncoderFailedError):
            await remote.encode(["hot tea"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda info: b"[" * 100_000,
        lambda info: json.dumps({**info, "encoder": {**info["encoder"], "dense_dimension": "8"}}).encode(),
        lambda info: json.dumps({**info, "encoder": {**info["encoder"], "vocabulary_size": 5}}).encode(),
        lambda info: json.dumps({**info, "adapters": [{"name": 5, "kind": None, "fingerprint": 7}]}).encode(),
        lambda info: json.dumps({**info, "encoding_settings": {"max_length": "x"}}).encode(),
        lambda info: json.dumps({**info, "encoding_settings": None}).encode(),
    ],
)
async def test_what_a_worker_says_of_itself_is_checked(garbling: Any, change: Any) -> None:
    url, wire = garbling()
    wire |= {"path": "/info", "change": lambda body: change(json.loads(body))}
    with pytest.raises(EncoderUnavailableError, match=r"info is not that|its tokenizer has"):
        async with connected(url):
            pass


async def test_metrics_tell_of_each_worker(garbling: Any) -> None:
    (bad, wire), (good, _) = garbling(), garbling()
    telemetry = Telemetry()
    remote = await RemoteEncoding.connect((bad, good), ACCESS, telemetry.workers)

    def total(url: str, reason: str) -> float | None:
        labels = {"url": url, "reason": reason}
        return telemetry.registry.get_sample_value("tercet_encoder_worker_refusals_total", labels)

    async def answers_until_refused(reason: str) -> int:
        """Both take turns, unless a probe has just found that one of them is not up."""
        answers = 0
        while not total(bad, reason):
            for worker in remote._workers:
                worker.server.circuit.state = ServerState.UP
            await remote.encode(["hot tea"])
            answers += 1
        return answers

    try:
        assert total(bad, "unsound") == total(good, "overloaded") == 0
        wire["change"] = GARBAGE["dense NaN"]
        answers = await answers_until_refused("unsound")
        assert remote.in_flight == {bad: 0, good: 0}
        wire |= {"start": {"status": 429, "headers": []}, "change": lambda _: b""}
        answers += await answers_until_refused("overloaded")
    finally:
        await remote.close()
    assert (total(bad, "unsound"), total(bad, "overloaded"), total(good, "unsound")) == (1, 1, 0)
    count = telemetry.registry.get_sample_value("tercet_encoder_worker_seconds_count", {"url": good})
    assert count == answers


async def test_a_wait_without_end_is_cut(garbling: Any) -> None:
    url, wire = garbling()
    async with connected(url) as remote:
        for given, seconds in ((b"inf", 3600), (b"nan", 1), (b"-5", 1), (b"soon", 1)):
            wire |= {"start": {"status": 429, "headers": [(b"retry-after", given)]}, "change": lambda _: b""}
            with pytest.raises(OverloadedError) as error:
                await remote.encode(["hot tea"])
            assert error.value.retry_after_seconds == seconds


async def test_nothing_of_it_is_stored_or_scored(garbling: Any, data: Any) -> None:
    url, wire = garbling()
    app = create_app(Settings(data=data, encoder_urls=url, encoder_probe_seconds=0.05))
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    documents = "/collections/demo/documents"

    async def ready() -> None:
        while (await client.get("/ready")).status_code != 200:
            await pause()

    async with app.router.lifespan_context(app), client:
        for kind in ("dense of length 7", "dense NaN", "dense of other dimension", "weights negative"):
            await ready()
            wire["change"] = GARBAGE[kind]
            put = await client.put(documents, json={"documents": [{"id": "x", "text": "tea"}]})
            searched = await client.post("/search", json={"collection": "demo", "query": "tea"})
            for answer in (put, searched):
                error = answer.json()["error"]
                assert answer.status_code == 503, answer.text
                assert error["code"] in ("encoder_failed", "encoder_unavailable")
                assert error["param"] is None
            wire["change"] = None
        await ready()
        assert (await client.get(f"{documents}/x")).status_code == 404
