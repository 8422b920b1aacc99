"""A read over the servers of a shard: which one answers, and which others are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.servers import ShardServers
from tercet.cluster.shards.times import ENOUGH
from tercet.index.errors import CollectionNotFoundError, InvalidQueryError
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.exceptions import BegunAgainError, OverloadedError, ShardUnavailableError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline, within
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest

Server = Callable[[], Coroutine[Any, Any, str]]


class Named:
    """The way to nowhere, by a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        raise NotImplementedError


class Counting(ShardObserver):
    """What was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def hedged(self, shard: str) -> None:
        self.told.append("hedged")

    def hedge_won(self, shard: str) -> None:
        self.told.append("won")

    def failed_over(self, shard: str) -> None:
        self.told.append("failed over")


class Shard:
    """A shard of servers that a test plays. asked: which were asked, in order; ended: which of them were not
    waited for.
    """

    def __init__(self, **servers: Server) -> None:
        self.servers = ShardServers([ShardClient(Named(name)) for name in servers])
        self.counting = Counting()
        self.servers.observe(self.counting)
        self.asked: list[str] = []
        self.ended: list[str] = []
        self._play = servers

    async def ask(self, client: ShardClient) -> str:
        self.asked.append(client.name)
        try:
            return await self._play[client.name]()
        except asyncio.CancelledError:
            self.ended.append(client.name)
            raise

    async def read(self, order: Sequence[int] = (0, 1), deadline: Deadline = NO_DEADLINE) -> str:
        """Who answers."""
        server, answer = await self.servers.ask(order, "candidates", self.ask, deadline)
        assert self.servers.clients[server].name == answer
        await asyncio.sleep(0)  # so that what is cancelled ends
        return answer

    def has_answered(self, seconds: float, *servers: int) -> None:
        """As if they had often answered after so long."""
        for server in servers:
            for _ in range(ENOUGH):
                self.servers.times.answered(server, "candidates", seconds)

    def saves_up(self, requests: int) -> None:
        for _ in range(requests):
            self.servers.budget.asked()


def answers(name: str) -> Server:
    async def play() -> str:
        return name

    return play


def fails(error: Exception) -> Server:
    async def play() -> str:
        raise error

    return play


async def hangs() -> str:
    await asyncio.Event().wait()
    raise AssertionError


LOST = ShardUnavailableError("shard a is lost", "a", sent=False)


async def test_one_that_answers_is_all_that_is_asked() -> None:
    shard = Shard(a=answers("a"), b=answers("b"))
    shard.has_answered(0.01, 0, 1)
    shard.saves_up(100)
    assert await shard.read() == "a"
    assert shard.asked == ["a"]
    assert shard.counting.told == []


@pytest.mark.parametrize("error", [LOST, OverloadedError("much", 1.0, "shard")])
async def test_another_one_is_asked_where_one_fails(error: Exception) -> None:
    shard = Shard(a=fails(error), b=answers("b"))
    assert await shard.read() == "b"
    assert shard.counting.told == ["failed over"]
    assert shard.servers.order() == [1, 0]


async def test_where_all_fail_it_is_the_first_failure() -> None:
    shard = Shard(a=fails(LOST), b=fails(ShardUnavailableError("b", "b", sent=False)))
    with pytest.raises(ShardUnavailableError, match="shard a is lost"):
        await shard.read()
    assert shard.asked == ["a", "b"]


async def test_what_the_request_is_to_blame_for_is_not_asked_twice() -> None:
    shard = Shard(a=fails(InvalidQueryError("no")), b=answers("b"))
    with pytest.raises(InvalidQueryError):
        await shard.read()
    assert shard.asked == ["a"]


async def test_a_replica_without_the_collection_is_passed_over() -> None:
    missing = CollectionNotFoundError("no collection")
    shard = Shard(a=answers("a"), b=fails(missing))
    assert await shard.read([1, 0]) == "a"
    shard = Shard(a=fails(missing), b=answers("b"))
    assert await shard.read() == "b"  # the writing server may have lost it
    shard = Shard(a=fails(CollectionNotFoundError("no collection", was_deleted=True)), b=answers("b"))
    with pytest.raises(CollectionNotFoundError):
        await shard.read()
    shard = Shard(a=fails(LOST), b=fails(missing))
    with pytest.raises(ShardUnavailableError):  # nobody says that there is none
        await shard.read([1, 0])


async def test_a_second_one_is_asked_where_the_first_takes_long() -> None:
    shard = Shard(a=hangs, b=answers("b"))
    shard.has_answered(0.001, 1)
    shard.has_answered(10.0, 0)  # the slow one's own times would never say so
    shard.saves_up(20)
    assert await shard.read() == "b"
    assert shard.counting.told == ["hedged", "won"]
    assert shard.ended == ["a"]
    assert shard.servers.order() == [1, 0]


async def test_the_first_may_still_win() -> None:
    asked = asyncio.Event()

    async def first() -> str:
        await asked.wait()
        return "a"

    async def second() -> str:
        asked.set()
        return await hangs()

    shard = Shard(a=first, b=second)
    shard.has_answered(0.001, 0, 1)
    shard.saves_up(20)
    assert await shard.read() == "a"
    assert shard.counting.told == ["hedged"]
    assert shard.ended == ["b"]


@pytest.mark.slow
async def test_so_many_are_asked_twice_and_no_more() -> None:
    shard = Shard(a=hangs, b=answers("b"))
    shard.has_answered(0.0, 0, 1)
    for number in range(1, 101):  # where nothing is left to spend, the first is waited for
        assert await shard.read(deadline=within(0.02)) == "b"
        assert shard.counting.told.count("hedged") <= 0.05 * number
    assert shard.counting.told.count("hedged") == 5
    assert shard.counting.told.count("failed over") == 95


async def test_a_silent_one_leaves_time_for_another() -> None:
    shard = Shard(a=hangs, b=answers("b"))
    assert await shard.read(deadline=within(0.1)) == "b"  # without knowing what is long
    assert shard.counting.told == ["failed over"]


async def test_what_one_has_begun_is_left_where_it_is_lost() -> None:
    shard = Shard(a=fails(LOST), b=answers("b"))
    with pytest.raises(BegunAgainError, match="shard a was lost"):
        await shard.servers.go_on(0, "hits", shard.ask, NO_DEADLINE)
    assert shard.servers.order() == [1, 0]
    assert await shard.servers.go_on(1, "hits", shard.ask, NO_DEADLINE) == "b"


@pytest.mark.parametrize("saved", [0, 20])
async def test_what_one_has_begun_is_left_where_it_is_silent(saved: int) -> None:
    shard = Shard(a=hangs, b=answers("b"))
    shard.has_answered(0.001, 0, 1)
    shard.saves_up(saved)
    deadline = within(60 if saved else 0.1)
    with pytest.raises(BegunAgainError):
        await shard.servers.go_on(0, "candidates", shard.ask, deadline)
    await asyncio.sleep(0)
    assert shard.ended == ["a"]


async def test_what_is_lost_of_the_only_server_is_its_failure() -> None:
    shard = Shard(a=fails(LOST))
    with pytest.raises(ShardUnavailableError):
        await shard.servers.go_on(0, "hits", shard.ask, NO_DEADLINE)
