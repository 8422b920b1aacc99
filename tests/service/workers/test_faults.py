"""Workers that reset connections, fail, hang, go and come back: who is harmed, and for how long."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest

from tercet.models.errors import EncoderFailedError, EncoderMemoryError, EncoderUnavailableError
from tercet.models.representations import Representations
from tercet.service.app import create_app, create_worker_app
from tercet.service.exceptions import OverloadedError
from tercet.service.remote.circuit import ServerState
from tercet.service.settings.settings import Settings, WorkerAccess
from tercet.service.workers.encoding import RemoteEncoding
from tests.ports import held_port
from tests.service.polling import pause

PATIENCE_SECONDS = 30  # far less than the timeout of a request
QUICK = WorkerAccess(timeout_seconds=600, probe_seconds=0.1, probe_timeout_seconds=PATIENCE_SECONDS)
# Of workers that hang; a busy machine may keep others from answering in time, too.
IMPATIENT = replace(QUICK, probe_timeout_seconds=1.5)
RESET = struct.pack("ii", 1, 0)  # closing discards what was sent and resets the connection


class FaultyWorker:
    """A worker behind an address that misbehaves when told to.

    faults: what to do with the next requests to `/embed`, "reset", "close", or a status and a code to answer.
    """

    def __init__(self, worker: str, port: int) -> None:
        self.faults: deque[str | tuple[int, str]] = deque()
        self.requests: Counter[str] = Counter()
        self.url = f"http://127.0.0.1:{port}"
        self.answering = asyncio.Event()
        self.answering.set()
        self._worker = worker
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._client = httpx.AsyncClient(timeout=60)

    async def listen(self) -> None:
        """Begins, or comes back at the same address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)

    async def vanish(self) -> None:
        """Goes as a killed process does."""
        self._server.close()
        for writer in list(self._writers):
            reset(writer)

    async def close(self) -> None:
        """Ends everything."""
        await self.vanish()
        await self._client.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._server.is_serving():  # it vanished as this connection was accepted
            reset(writer)
            return
        self._writers.add(writer)
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request; whether another may follow on the connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        method, path = head.decode().split(" ")[:2]
        length = re.search(rb"content-length: (\d+)", head.lower())
        body = await reader.readexactly(int(length[1]) if length else 0)
        self.requests[path] += 1
        await self.answering.wait()
        fault: str | tuple[int, str] | None = None
        if path == "/embed":
            fault = self.faults.popleft() if self.faults else None
        if fault == "reset":
            reset(writer)
            return False
        if isinstance(fault, tuple):
            status, code = fault
            content = orjson.dumps({"error": {"code": code, "message": "made to fail"}})
        else:
            accept = {"Accept": "application/x-safetensors", "Content-Type": "application/json"}
            response = await self._client.request(method, self._worker + path, content=body, headers=accept)
            status, content = response.status_code, response.content
        writer.write(b"HTTP/1.1 %d Said\r\nContent-Length: %d\r\n\r\n" % (status, len(content)) + content)
        await writer.drain()
        return fault != "close"


def reset(writer: asyncio.StreamWriter) -> None:
    """Resets the connection."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


@asynccontextmanager
async def faulty(*workers: str) -> AsyncIterator[list[FaultyWorker]]:
    """Each worker behind an address that misbehaves when told to."""
    with ExitStack() as ports:
        found = [FaultyWorker(worker, ports.enter_context(held_port())) for worker in workers]
        for each in found:
            await each.listen()
        try:
            yield found
        finally:
            for each in found:
                await each.close()


@asynccontextmanager
async def connected(*workers: FaultyWorker, access: WorkerAccess = QUICK) -> AsyncIterator[RemoteEncoding]:
    remote = await RemoteEncoding.connect([worker.url for worker in workers], access)
    try:
        yield remote
    finally:
        await remote.close()


async def until(remote: RemoteEncoding, *states: ServerState) -> None:
    """Returns once the workers have these states."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if [worker.server.circuit.state for worker in remote._workers] == list(states):
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def make_worker(make_server: Any) -> Any:
    """Makes a real encoder worker; options as for `make_app`."""
    return lambda **options: make_server(create=create_worker_app, **options)


@pytest.mark.parametrize("fault", ["reset", "close"])
async def test_a_broken_connection_is_tried_again_at_once(make_worker: Any, fault: str) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            worker.faults.append(fault)
            for _ in range(3):
                assert len(await remote.encode(["tea"])) == 1
                assert remote._workers[0].server.circuit.state is ServerState.UP
            assert worker.requests["/embed"] == (4 if fault == "reset" else 3)


async def test_two_resets_fail_one_request_alone(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            worker.faults.extend(["reset", "reset"])
            with pytest.raises(EncoderUnavailableError):
                await remote.encode(["tea"])
            assert len(await remote.encode(["tea"])) == 1  # while suspected it is asked
            await until(remote, ServerState.UP)


async def test_an_error_fails_one_request_alone(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            worker.faults.append((500, "internal"))
            with pytest.raises(EncoderFailedError, match="made to fail"):
                await remote.encode(["tea"])
            assert remote._workers[0].server.circuit.state is ServerState.UP
            assert len(await remote.encode(["tea"])) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(500, "internal", EncoderFailedError), (503, "out_of_memory", EncoderMemoryError)],
)
async def test_a_request_that_fails_on_every_worker_harms_no_other(
    make_worker: Any, status: int, code: str, error: type[Exception]
) -> None:
    with make_worker() as url:
        async with faulty(url, url) as workers, connected(*workers) as remote:
            for worker in workers:
                worker.faults.append((status, code))
            with pytest.raises(error):
                await remote.encode(["tea"])
            assert [worker.requests["/embed"] for worker in workers] == [1, 1]
            assert all(worker.server.circuit.state is ServerState.UP for worker in remote._workers)
            for _ in range(4):
                assert len(await remote.encode(["tea"])) == 1
            assert sum(worker.requests["/embed"] for worker in workers) == 6


async def test_what_one_worker_fails_on_another_may_do(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url, url) as workers, connected(*workers) as remote:
            workers[0].faults.extend([(500, "internal")] * 4)
            for _ in range(4):
                assert len(await remote.encode(["tea"])) == 1


@pytest.mark.slow
async def test_a_hung_worker_lets_go_of_its_requests_and_is_found_again(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker], connected(worker, access=IMPATIENT) as remote:
            worker.answering.clear()
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = await asyncio.gather(
                    *(remote.encode(["tea"]) for _ in range(3)), return_exceptions=True
                )
            assert all(isinstance(each, EncoderUnavailableError) for each in found)
            assert remote.states == {worker.url: False}
            asked = worker.requests["/embed"]
            with pytest.raises(EncoderUnavailableError):
                await remote.encode(["tea"])
            assert worker.requests["/embed"] == asked  # it was refused without asking
            worker.answering.set()
            await until(remote, ServerState.UP)
            assert len(await remote.encode(["tea"])) == 1


@pytest.mark.slow
async def test_requests_of_a_hung_worker_move_to_another(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url, url) as workers, connected(*workers, access=IMPATIENT) as remote:
            workers[0].answering.clear()
            async with asyncio.timeout(PATIENCE_SECONDS):
                found = await asyncio.gather(*(remote.encode(["tea"]) for _ in range(6)))
            assert [len(each) for each in found] == [1] * 6
            assert workers[1].requests["/embed"] == 6
            await until(remote, ServerState.DOWN, ServerState.UP)


@pytest.mark.slow
async def test_a_slow_worker_is_not_taken_for_a_hung_one(make_worker: Any, held: Any) -> None:
    with make_worker(encoder=held) as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            held.gate.clear()
            waiting = asyncio.create_task(remote.encode(["tea"]))
            asked = worker.requests["/ready"]
            async with asyncio.timeout(PATIENCE_SECONDS):
                while worker.requests["/ready"] < asked + 5:
                    await remote.check()
                    await asyncio.sleep(0.01)
            assert not waiting.done()
            assert remote._workers[0].server.circuit.state is not ServerState.DOWN
            held.gate.set()
            assert len(await waiting) == 1


async def test_a_worker_that_is_no_longer_ready_may_finish_what_it_has(
    make_app: Any, serve: Any, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(create=create_worker_app, encoder=held)
    with serve(app) as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            held.gate.clear()
            waiting = asyncio.create_task(remote.encode(["tea"]))
            while not worker.requests["/embed"]:  # a probe is not to find out before it is sent
                await pause()
            monkeypatch.setattr(app.state.runtime, "_ready", False)
            await until(remote, ServerState.DOWN)
            held.gate.set()
            assert len(await waiting) == 1


@pytest.mark.slow
async def test_a_worker_that_goes_and_comes_back(make_worker: Any) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker], connected(worker) as remote:
            for _ in range(2):
                assert len(await remote.encode(["tea"])) == 1
                await worker.vanish()
                await until(remote, ServerState.DOWN)
                with pytest.raises(EncoderUnavailableError):
                    await remote.encode(["tea"])
                await worker.listen()
                await until(remote, ServerState.UP)
                assert len(await remote.encode(["tea"])) == 1


async def test_a_worker_that_comes_back_with_another_encoder_stays_down(make_worker: Any, tiny: Any) -> None:
    with make_worker() as url, make_worker(encoder=type(tiny)(seed=1)) as other:
        async with faulty(url) as [worker], connected(worker) as remote:
            worker._worker = other
            with pytest.raises(EncoderUnavailableError, match="start all workers with one checkpoint"):
                await remote.encode(["tea"])
            await until(remote, ServerState.DOWN)
            worker._worker = url
            await until(remote, ServerState.UP)
            assert len(await remote.encode(["tea"])) == 1


async def test_when_all_are_overloaded_the_soonest_says_when_to_return(
    make_worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_worker() as url:
        async with faulty(url, url) as workers, connected(*workers) as remote:
            for worker, seconds in zip(remote._workers, (7.0, 3.0), strict=True):

                async def busy(*_: Any, seconds: float = seconds) -> Representations:
                    raise OverloadedError("too much waits", seconds, "wait")

                monkeypatch.setattr(worker, "encode", busy)
            with pytest.raises(OverloadedError) as error:
                await remote.encode(["tea"])
            assert error.value.retry_after_seconds == 3


async def test_what_a_client_of_the_search_server_is_told(make_worker: Any, data: Any) -> None:
    with make_worker() as url:
        async with faulty(url) as [worker]:
            app = create_app(Settings(data=data, encoder_urls=worker.url, encoder_probe_seconds=0.1))
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
            async with app.router.lifespan_context(app), client:
                while (await client.get("/ready")).status_code != 200:
                    await pause()
                for status, code, told in [
                    (500, "internal", "encoder_failed"),
                    (503, "out_of_memory", "out_of_memory"),
                ]:
                    worker.faults.append((status, code))
                    response = await client.post("/embed", json={"inputs": "tea"})
                    assert (response.status_code, response.json()["error"]["code"]) == (503, told)
                    assert worker.url not in response.text
                assert (await client.post("/embed", json={"inputs": "tea"})).status_code == 200
