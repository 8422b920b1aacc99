"""A shard whose writer is another server by now: whom the router writes to, and what it says of nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from threading import Thread
from typing import Any

import orjson
import pytest

from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.index.errors import DocumentChangedError
from tercet.service.exceptions import CallFailedError, RelayedError, ShardUnavailableError
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest

READ_ONLY, REPLACED = (403, "read_only_server"), (409, "writer_replaced")


class Server:
    """Answers a write, and says whether it writes; `refusal` in the place of the first. asked: how often."""

    def __init__(self, name: str, writes: str, refusal: tuple[int, str] | None = None) -> None:
        self.name, self.writes, self.refusal = name, writes, refusal
        self.is_lost = False
        self.asked = {"/ready": 0, "/write": 0}

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        if self.is_lost:
            raise CallFailedError("unreachable", "is lost")
        self.asked[request.path] += 1
        if request.path == "/ready":
            return RemoteAnswer(200, {}, orjson.dumps({"status": "ready", "writes": self.writes}))
        if self.refusal is None:
            return RemoteAnswer(200, {}, orjson.dumps(self.name))
        status, code = self.refusal
        error = {"message": "the reason", "code": code, "param": None}
        return RemoteAnswer(status, {}, orjson.dumps({"error": error}))


@pytest.fixture
def loop() -> Iterator[Loop]:
    """That of another thread."""
    running, taken = asyncio.new_event_loop(), Loop()
    thread = Thread(target=running.run_forever)
    thread.start()

    async def take() -> None:
        taken.take()

    asyncio.run_coroutine_threadsafe(take(), running).result()
    yield taken
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


def fleet_of(loop: Loop, servers: Sequence[Server]) -> Fleet:
    first, *others = (ShardClient(server) for server in servers)
    return Fleet([[first, *others]], loop)


async def write(client: ShardClient) -> Any:
    return await client.json("PUT", "/write")


@pytest.mark.parametrize("refusal", [READ_ONLY, REPLACED, None])
def test_the_one_that_says_that_it_writes_is_found_and_kept(
    loop: Loop, refusal: tuple[int, str] | None
) -> None:
    servers = [Server("a", "elsewhere", refusal), Server("b", "elsewhere"), Server("c", "storage_full")]
    servers[0].is_lost = refusal is None
    fleet = fleet_of(loop, servers)
    assert [fleet.one(0, write), fleet.one(0, write)] == ["c", "c"]
    assert [server.asked["/write"] for server in servers] == [int(refusal is not None), 0, 2]
    assert [client.name for client in fleet.clients] == ["c"]
    assert fleet.servers[0].order(writer_first=True) == [2, 0, 1]


def test_where_nobody_says_so_it_is_told_and_asked_once_a_second(loop: Loop) -> None:
    servers = [Server("a", "elsewhere", REPLACED), Server("b", "elsewhere")]
    fleet = fleet_of(loop, servers)
    for _ in range(3):
        with pytest.raises(ShardUnavailableError, match=r"a is written by a server that .* \(the reason\)"):
            fleet.one(0, write)
    assert servers[1].asked == {"/ready": 1, "/write": 0}


@pytest.mark.parametrize(("status", "code"), [(409, "document_changed"), (422, "invalid_document")])
def test_any_other_refusal_is_the_answer(loop: Loop, status: int, code: str) -> None:
    servers = [Server("a", "ready", (status, code)), Server("b", "ready")]
    with pytest.raises((DocumentChangedError, RelayedError), match="the reason"):
        fleet_of(loop, servers).one(0, write)
    assert servers[1].asked == {"/ready": 0, "/write": 0}
