"""The servers of one shard: one takes its writes, the others, its replicas, follow what that publishes. The
first of them is taken for the writing one, until it fails or refuses a write and another says that it writes.

A read goes to the one that is expected to answer first. Where that fails, or is silent for half of the time
that there is, another is asked, too. Where it takes longer than most answers of the fastest one do, a second
one is asked as well, as far as the budget allows (Dean and Barroso 2013, "The Tail at Scale").
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from tercet.cluster.shards.budget import HedgeBudget
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.refusals import is_of_server, is_refused_by_replica
from tercet.cluster.shards.times import Clock, ShardTimes
from tercet.index.errors import CollectionMovedError, CollectionNotFoundError
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.exceptions import BegunAgainError
from tercet.service.load.deadlines import Deadline, within

FIND_SECONDS = 1.0  # for an answer of who writes, and between two questions
READY, WRITING = "/ready", ("ready", "storage_full", "unavailable")  # what who writes says of that
SHARE = 0.5  # of the time that is left, after which another is asked in any case
LONGEST_SECONDS = 30.0  # of that
LEFT_AFTER = 10.0  # long times: then a request does not go on with what it began at a server

log = logging.getLogger("tercet")

Result = TypeVar("Result")
Ask = Callable[[ShardClient], Coroutine[Any, Any, Result]]


class ShardServers:
    """Those of one shard. Use from one event loop, but for `order`.

    writer: the number of the one that takes the shard's writes.
    """

    def __init__(self, clients: Sequence[ShardClient], clock: Clock = time.monotonic) -> None:
        """clients: one at least; clock: in seconds."""
        self.clients = tuple(clients)
        self.writer = 0
        self._asked_who_writes = -math.inf
        self._finding: asyncio.Future[None] | None = None
        self.times = ShardTimes(len(clients), clock)
        self.budget = HedgeBudget()
        self.clock = clock
        self.observer = ShardObserver()

    def __len__(self) -> int:
        return len(self.clients)

    @property
    def name(self) -> str:
        """What the shard is called: as its first server."""
        return self.clients[0].name

    @property
    def replicas(self) -> list[int]:
        """The numbers of the servers that do not write."""
        return [number for number in range(len(self)) if number != self.writer]

    def observe(self, observer: ShardObserver) -> None:
        """Tells it from now on."""
        self.observer = observer
        for client in self.clients:
            client.observe(observer)
        observer.known(self.name, [client.name for client in self.clients])

    def order(self, *, writer_first: bool = False) -> list[int]:
        """The servers' numbers in the order in which a read asks them: see `ShardTimes.order`."""
        return [self.writer, *self.replicas] if writer_first else self.times.order()

    async def ask(
        self, order: Sequence[int], operation: str, ask: Ask[Result], deadline: Deadline
    ) -> tuple[int, Result]:
        """What one of these servers gives, and which one it is.

        operation: what is asked, in a word: its times are known by it. deadline: where one is silent, another
        is asked long before. Raises what the request itself is to blame for, or else where all fail the first
        failure.
        """
        self.budget.asked()
        if len(order) == 1:
            return order[0], await self.ask_one(order[0], operation, ask)
        return await _Race(self, operation, ask, deadline).run(order)

    async def ask_one(self, server: int, operation: str, ask: Ask[Result]) -> Result:
        """What one server gives."""
        client, times, began = self.clients[server], self.times.servers[server], self.clock()
        times.waiting += 1
        try:
            result = await ask(client)
        except Exception as error:
            if is_of_server(error):
                times.silent()
            if server == self.writer and is_refused_by_replica(error):
                self._begin_to_find_writer()
            raise
        finally:
            times.waiting -= 1
        self.times.answered(server, operation, self.clock() - began)
        return result

    async def go_on(self, server: int, operation: str, ask: Ask[Result], deadline: Deadline) -> Result:
        """What a server gives that has begun something which no other one knows of.

        Raises BegunAgainError where it fails, or is silent for long: then there is time for another.
        """
        if len(self) == 1:
            return await self.ask_one(server, operation, ask)
        task = asyncio.ensure_future(self.ask_one(server, operation, ask))
        try:
            if not await self._comes_in_time(task, operation, deadline):
                raise self.leave(server)
            return await task
        except Exception as error:
            if not is_of_server(error):
                raise
            raise self.leave(server) from error
        finally:
            drop(task)

    def leave(self, server: int) -> BegunAgainError:
        """What has a request begin anew, at another server than this one."""
        self.times.servers[server].left()
        self.observer.failed_over(self.name)
        return BegunAgainError(f"shard {self.clients[server].name} was lost meanwhile; ask again")

    def passes_over(self, server: int, error: Exception) -> bool:
        """Whether after this failure of a server another may do better. A replica need not have a collection
        yet, and the writing server may have lost it; where it deleted it, it knows.
        """
        if isinstance(error, CollectionNotFoundError):
            return server != self.writer or not error.was_deleted
        return is_of_server(error) or isinstance(error, CollectionMovedError)

    async def find_writer(self) -> None:
        """Asks replicas whether one of them writes by now, as after a promotion; once a second at most."""
        self._begin_to_find_writer()
        if self._finding is not None:
            await asyncio.shield(self._finding)

    def _begin_to_find_writer(self) -> None:
        is_late = self._finding is None or self._finding.done()
        if len(self) > 1 and is_late and self.clock() > self._asked_who_writes + FIND_SECONDS:
            self._asked_who_writes = self.clock()
            self._finding = asyncio.ensure_future(self._find_writer())

    async def _find_writer(self) -> None:
        deadline = within(FIND_SECONDS)

        async def writes(number: int) -> bool:
            with suppress(Exception):  # whatever it is, this one is not known to write
                answer = await self.clients[number].json("GET", READY, deadline=deadline)
                return answer["writes"] in WRITING
            return False

        replicas = self.replicas
        for number, found in zip(replicas, await asyncio.gather(*map(writes, replicas)), strict=True):
            if found:
                self.writer = number
                log.warning("shard %s is written by %s from now on", self.name, self.clients[number].name)
                return

    async def _comes_in_time(self, task: asyncio.Future[Any], operation: str, deadline: Deadline) -> bool:
        longest = patience_seconds(deadline)
        long = self.times.long_seconds(operation)
        if long is not None and LEFT_AFTER * long < longest:
            done, _ = await asyncio.wait([task], timeout=LEFT_AFTER * long)
            if done or self.budget.take():
                return bool(done)
        done, _ = await asyncio.wait([task], timeout=patience_seconds(deadline))
        return bool(done)


class _Race(Generic[Result]):
    """One request to some servers of a shard, of which the first answer counts."""

    def __init__(self, servers: ShardServers, operation: str, ask: Ask[Result], deadline: Deadline) -> None:
        self._servers = servers
        self._operation = operation
        self._ask = ask
        self._deadline = deadline
        self._running: dict[asyncio.Future[Result], int] = {}  # in the order in which they were asked
        self._failures: list[Exception] = []

    async def run(self, order: Sequence[int]) -> tuple[int, Result]:
        """See `ShardServers.ask`."""
        observer, name = self._servers.observer, self._servers.name
        left, hedged = deque(order), None
        long_seconds = self._servers.times.long_seconds(self._operation)
        self._begin(left.popleft())
        try:
            while True:
                patience = patience_seconds(self._deadline) if long_seconds is None else long_seconds
                done, _ = await asyncio.wait(
                    self._running, timeout=patience if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    if long_seconds is None:
                        observer.failed_over(name)
                    else:
                        long_seconds = None  # once is enough
                        if not self._servers.budget.take():
                            continue
                        hedged = left[0]
                        observer.hedged(name)
                    self._begin(left.popleft())
                    continue
                answered = self._answered(done)
                if answered is not None:
                    if answered[0] == hedged:
                        observer.hedge_won(name)
                    return answered
                if not self._running:
                    if not left:
                        raise self._failure()
                    observer.failed_over(name)
                    self._begin(left.popleft())
        finally:
            for task in self._running:
                drop(task)

    def _begin(self, server: int) -> None:
        task = asyncio.ensure_future(self._servers.ask_one(server, self._operation, self._ask))
        self._running[task] = server

    def _answered(self, done: set[asyncio.Future[Result]]) -> tuple[int, Result] | None:
        """The first answer, after which servers that were asked before are known as slow; None without one.

        Raises what is not a server's fault.
        """
        for task in [task for task in self._running if task in done]:
            error = task.exception()
            if error is None:
                for earlier, server in self._running.items():
                    if earlier is task:
                        return server, task.result()
                    self._servers.times.servers[server].silent()
        for task in done:
            server, error = self._running.pop(task), task.exception()
            if not isinstance(error, Exception) or not self._servers.passes_over(server, error):
                raise error or RuntimeError
            self._failures.append(error)
        return None

    def _failure(self) -> Exception:
        """The first that says more than that a replica has not got a collection."""
        of_servers = [error for error in self._failures if is_of_server(error)]
        return (of_servers or self._failures)[0]


def patience_seconds(deadline: Deadline) -> float:
    """For how long one of several servers is waited for, before another is asked."""
    return min(SHARE * deadline.remaining_seconds, LONGEST_SECONDS)


def drop(task: asyncio.Future[Any]) -> None:
    """Ends a request whose answer nobody waits for."""
    task.cancel()
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
