"""A shard over HTTP: answers, connections that break, silence, garbage, and deadlines."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tercet.cluster.shards.client import ShardAccess, ShardClient
from tercet.index.errors import CollectionNotFoundError
from tercet.service.exceptions import (
    DeadlineExceededError,
    OverloadedError,
    RelayedError,
    ShardFailedError,
    ShardTimeoutError,
    ShardUnavailableError,
)
from tercet.service.http.checksums import checksum_of, request_checksums
from tercet.service.load.deadlines import Deadline
from tercet.service.remote.circuit import ServerState
from tests.service.polling import pause

Handler = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]
LATER = Deadline(time.monotonic() + 3600)


def answer(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def shard(handle: Handler) -> AsyncIterator[str]:
    """The URL of a server that lets `handle` answer to the head of each request, with its body."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        head += await reader.readexactly(int(line.partition(b":")[2]))
                await handle(head, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@asynccontextmanager
async def client(url: str, **access: float | str) -> AsyncIterator[ShardClient]:
    given = ShardAccess(**access)  # type: ignore[arg-type]  # parameters of several types
    connections = given.connections()
    try:
        yield given.client(url, connections)
    finally:
        await connections.close()


def always(content: bytes) -> Handler:
    async def handle(_request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return handle


async def test_a_request_has_its_key_deadline_type_and_query() -> None:
    heads: list[bytes] = []

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(answer(200, b'{"count": 3}'))

    async with shard(handle) as url, client(url, key="secret") as one:
        found = await one.json(
            "POST",
            "/a%2Fb/count",
            {"filter": None},
            query={"limit": "2"},
            deadline=Deadline(time.monotonic() + 9),
        )
    assert found == {"count": 3}
    (head,) = heads
    first, *lines = head.split(b"\r\n")
    assert first == b"POST /a%2Fb/count?limit=2 HTTP/1.1"
    assert b"Authorization: Bearer secret" in lines
    assert b"Content-Type: application/json" in lines
    (given,) = (line for line in lines if line.startswith(b"X-Request-Timeout: "))
    assert 0 < float(given.partition(b": ")[2]) <= 9
    assert lines[-1] == b'{"filter":null}'


async def test_connections_are_kept() -> None:
    writers: set[asyncio.StreamWriter] = set()

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        writer.write(answer(204, b""))

    async with shard(handle) as url, client(url) as one:
        for _ in range(5):
            assert await one.json("DELETE", "/x") is None
    assert len(writers) == 1


async def test_a_connection_that_was_closed_while_it_was_kept_is_made_again() -> None:
    asked = 0

    async def handle(_head: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 2:
            writer.close()
        else:
            writer.write(answer(200, b"{}"))

    async with shard(handle) as url, client(url) as one:
        await one.json("POST", "/x")
        assert await one.json("POST", "/x") == {}
        assert asked == 3
        asked = 1
        with pytest.raises(ShardUnavailableError, match=url) as caught:
            await one.json("POST", "/x", repeatable=False)
        assert caught.value.sent
        assert asked == 2


async def test_a_shard_that_is_not_there_is_named_and_soon_not_asked(dead_url: str) -> None:
    async with client(dead_url) as one:
        for _ in range(3):
            with pytest.raises(ShardUnavailableError, match="cannot be reached") as caught:
                await one.json("GET", "/x")
            assert (caught.value.shard, caught.value.sent) == (dead_url, False)
        with pytest.raises(ShardUnavailableError, match="not asked for a moment"):
            await one.json("GET", "/x")


@pytest.mark.slow
async def test_a_shard_that_answers_again_is_asked_again_though_no_request_tried() -> None:
    asked: list[bytes] = []
    looked, answers = asyncio.Event(), asyncio.Event()

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        asked.append(head.partition(b" HTTP")[0])
        if asked[-1] == b"GET /health":
            looked.set()
        if answers.is_set():
            writer.write(answer(503, b"busy"))

    async with shard(handle) as url, client(url, timeout_seconds=0.5) as one:
        circuit = one.server.circuit
        while circuit.state is ServerState.UP:
            with pytest.raises(ShardTimeoutError):
                await one.json("GET", "/x")
        with pytest.raises(ShardUnavailableError, match="not asked for a moment"):
            await one.json("GET", "/x", deadline=LATER)
        await looked.wait()
        assert circuit.state is not ServerState.UP
        answers.set()
        while circuit.state is not ServerState.UP:
            await pause()
        with pytest.raises(ShardFailedError, match="status 503"):
            await one.json("GET", "/x", deadline=LATER)
    assert asked[-1] == b"GET /x"


async def test_nobody_probes_a_shard_when_the_connections_have_ended(dead_url: str) -> None:
    async with client(dead_url) as one:
        while one.server.circuit.state is ServerState.UP:
            with pytest.raises(ShardUnavailableError):
                await one.json("GET", "/x")
        assert "probes" in {task.get_name() for task in asyncio.all_tasks()}
    assert "probes" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_silence_ends_with_the_deadline() -> None:
    async with shard(always(b"")) as url, client(url) as one:
        with pytest.raises(ShardTimeoutError, match=rf"{url} did not answer within 0\."):
            await one.json("GET", "/x", deadline=Deadline(time.monotonic() + 0.5))
        with pytest.raises(DeadlineExceededError):
            await one.json("GET", "/x", deadline=Deadline(time.monotonic() - 1))
    async with (
        shard(always(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")) as url,
        client(url, timeout_seconds=0.05) as one,
    ):
        with pytest.raises(ShardTimeoutError):
            await one.json("GET", "/x")


@pytest.mark.parametrize(
    "content",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        answer(200, b"<html>"),
        answer(200, b"\xff{"),
        answer(500, b"oops"),
        answer(418, b'{"error": "tea"}'),
        answer(302, b"", "Location: http://elsewhere.example/"),
        answer(503, b'{"error": {"message": 1, "code": "x", "param": null}}'),
    ],
)
async def test_garbage_is_the_fault_of_the_shard(content: bytes) -> None:
    async with shard(always(content)) as url, client(url) as one:
        with pytest.raises((ShardFailedError, ShardUnavailableError), match=url) as caught:
            await one.json("GET", "/x", deadline=LATER)
        assert caught.value.shard == url


@pytest.mark.parametrize("sent", [b'{"count": 3}', b'{"count": 2}'])
async def test_an_answer_of_another_checksum_is_the_fault_of_the_shard(sent: bytes) -> None:
    given: list[bytes] = []
    body = b'{"count": 3}'

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        given.extend(line for line in head.split(b"\r\n") if line.startswith(b"x-checksum: "))
        writer.write(answer(200, body, f"X-Checksum: {checksum_of(sent)}"))

    async with shard(handle) as url, client(url) as one:
        if sent == body:
            assert await one.json("POST", "/x", {}, query={"a": "b"}) == {"count": 3}
        else:
            with pytest.raises(ShardFailedError, match=f"{url} was damaged"):
                await one.json("POST", "/x", {}, query={"a": "b"})
    assert given == [b"x-checksum: " + request_checksums("POST", "/x?a=b", b"{}").encode()]


async def test_an_answer_has_a_largest_size() -> None:
    async def chunked(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            writer.write(b"40\r\n" + b" " * 64 + b"\r\n")
        writer.write(b"0\r\n\r\n")

    for handle in (always(answer(200, b" " * 101)), chunked):
        async with shard(handle) as url, client(url, answer_bytes=100) as one:
            with pytest.raises(ShardFailedError, match="more than 100 bytes"):
                await one.json("GET", "/x", deadline=LATER)
    async with shard(chunked) as url, client(url, answer_bytes=192) as one:
        assert len((await one.send("GET", "/x")).body) == 192


async def test_large_bodies_arrive_whole() -> None:
    body = bytes(range(256)) * 2**14
    sizes: list[int] = []

    async def handle(head: bytes, writer: asyncio.StreamWriter) -> None:
        sizes.append(len(head.partition(b"\r\n\r\n")[2]))
        writer.write(answer(204, b""))

    async with shard(handle) as url, client(url) as one:
        await one.send("PUT", "/x", body, "application/octet-stream")
    assert sizes == [len(body)]


def error(status: int, code: str, param: str | None = None, *headers: str) -> bytes:
    shown = "null" if param is None else f'"{param}"'
    body = f'{{"error": {{"type": "t", "message": "why", "param": {shown}, "code": "{code}"}}}}'
    return answer(status, body.encode(), *headers)


async def test_errors_of_a_shard_are_those_of_one_server() -> None:
    async def raised(content: bytes) -> Exception:
        async with shard(always(content)) as url, client(url) as one:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - each kind is looked at
                await one.json("GET", "/x", deadline=LATER)
            return caught.value

    assert isinstance(await raised(error(404, "collection_not_found")), CollectionNotFoundError)
    refused = await raised(error(422, "invalid_filter", "filter"))
    assert isinstance(refused, RelayedError)
    assert (str(refused), refused.status, refused.code, refused.param) == (
        "why",
        422,
        "invalid_filter",
        "filter",
    )
    assert refused.shard is None
    damaged = await raised(error(503, "damaged_index"))
    assert isinstance(damaged, RelayedError)
    assert damaged.shard is not None
    assert str(damaged) == f"shard {damaged.shard}: why"
    busy = await raised(error(429, "overloaded", None, "Retry-After: 7"))
    assert isinstance(busy, OverloadedError)
    assert (busy.retry_after_seconds, busy.reason) == (7, "shard")
    assert isinstance(await raised(error(429, "deadline_exceeded")), DeadlineExceededError)
    unknown = await raised(error(401, "key_required"))
    assert isinstance(unknown, ShardUnavailableError)
    assert "shards_key" in str(unknown)
