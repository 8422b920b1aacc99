"""Sends requests to a server from a process of its own: at times that are given, or one after another.

Open loop: a request goes out when it is due, whether or not earlier ones were answered, and its time counts
from then. It speaks plain HTTP/1.1, for about 0.3 ms of CPU each on connections that are kept, and 0.6 on new
ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, TypeVar

GIVE_UP_SECONDS = 60.0
OK = 200
NO_ANSWER = 0  # the status of a request that got none

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Due:
    """A request: seconds after the start, its kind, its bytes, and whether its connection is new."""

    seconds: float
    kind: str
    content: bytes
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request: when it was due, how long until its answer was whole, and the answer."""

    due: float
    kind: str
    seconds: float
    status: int
    retry_after: int | None


@dataclass(slots=True)
class Sent:
    """All outcomes, how late the latest request went out, and this process's CPU time."""

    outcomes: list[Outcome] = field(default_factory=list)
    late_seconds: float = 0.0
    cpu_seconds: float = 0.0


@contextmanager
def generator() -> Iterator[Callable[..., Any]]:
    """Calls a function of this file in a process of its own: `run(send, port, requests)`."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        yield lambda call, *args: pool.submit(call, *args).result()


def post(path: str, body: bytes, *headers: str) -> bytes:
    """The bytes of a POST of JSON."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def get(path: str) -> bytes:
    """The bytes of a GET."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def send(port: int, requests: Sequence[Due]) -> Sent:
    """Open loop: every request at its time."""
    return _measured(_send(port, requests))


def send_then_probe(
    port: int, requests: Sequence[Due], probes: Sequence[tuple[str, bytes]], pause_seconds: float
) -> Sent:
    """The same; then, while the last of them wait, each probe is sent again and again until it is taken."""
    return _measured(_send(port, requests, probes, pause_seconds))


def saturate(
    port: int, contents: Sequence[tuple[str, bytes]], clients: int, seconds: float, fresh: bool = False
) -> Sent:
    """Closed loop: so many clients, each sending the next request when its last one was answered.

    fresh: each on a new connection.
    """
    return _measured(_saturate(port, contents, clients, seconds, fresh))


def _measured(work: Coroutine[Any, Any, Sent]) -> Sent:
    started = time.process_time()
    sent = asyncio.run(work)
    sent.cpu_seconds = time.process_time() - started
    return sent


async def _send(
    port: int,
    requests: Sequence[Due],
    probes: Sequence[tuple[str, bytes]] = (),
    pause_seconds: float = 0.0,
) -> Sent:
    client, sent, tasks = _Client(port), Sent(), list[asyncio.Task[int]]()
    started = time.perf_counter()

    async def one(request: Due) -> int:
        outcome = await client.ask(request, started)
        sent.outcomes.append(outcome)
        return outcome.status

    for request in requests:
        pause = started + request.seconds - time.perf_counter()
        if pause > 0:
            await asyncio.sleep(pause)
        sent.late_seconds = max(sent.late_seconds, -pause)
        tasks.append(asyncio.create_task(one(request)))

    async def probe(kind: str, content: bytes) -> None:
        status = NO_ANSWER
        while status != OK:
            status = await one(Due(time.perf_counter() - started, kind, content))
            await asyncio.sleep(pause_seconds)

    await asyncio.gather(*tasks, *(probe(*each) for each in probes))
    client.close()
    return sent


async def _saturate(
    port: int, contents: Sequence[tuple[str, bytes]], clients: int, seconds: float, fresh: bool
) -> Sent:
    client, sent, turn = _Client(port), Sent(), iter(range(10**9))
    started = time.perf_counter()

    async def one() -> None:
        while (now := time.perf_counter() - started) < seconds:
            kind, content = contents[next(turn) % len(contents)]
            sent.outcomes.append(await client.ask(Due(now, kind, content, fresh), started))

    await asyncio.gather(*(one() for _ in range(clients)))
    client.close()
    return sent


class _Client:
    """Connections to one server, used again when an answer is whole."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[Connection] = []

    async def ask(self, request: Due, started: float) -> Outcome:
        """Sends a request and reads its answer."""
        status, retry_after = NO_ANSWER, None
        try:
            async with asyncio.timeout(GIVE_UP_SECONDS):
                kept = self._idle and not request.fresh
                connection = self._idle.pop() if kept else await self._connect()
                connection[1].write(request.content)
                status, retry_after = await _answer(connection[0])
                if request.fresh:
                    connection[1].close()
                else:
                    self._idle.append(connection)
        except (TimeoutError, OSError, EOFError):
            pass
        taken = time.perf_counter() - started - request.seconds
        return Outcome(request.seconds, request.kind, taken, status, retry_after)

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()

    async def _connect(self) -> Connection:
        return await asyncio.open_connection("127.0.0.1", self._port)


async def _answer(reader: asyncio.StreamReader) -> tuple[int, int | None]:
    """Status and `Retry-After` of an answer, once all of it is read."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(headers.get("content-length", "0")))
    told = headers.get("retry-after")
    return int(first.split()[1]), None if told is None else int(told)
