"""All shards of a router, asked at once by threads that wait."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from tercet.cluster.shards.calls import Loop, outcomes
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.refusals import is_refused_by_replica, unwritten
from tercet.cluster.shards.servers import Ask, ShardServers
from tercet.service.load.deadlines import NO_DEADLINE, Deadline

READ = "read"  # of documents and what is told of collections

Result = TypeVar("Result")


class Fleet:
    """Shards in order of their numbers, each asked at the server that takes its writes. Methods are for
    threads other than that of the event loop.
    """

    def __init__(self, clients: Sequence[Sequence[ShardClient]], loop: Loop) -> None:
        """clients: the servers of each shard, the one that is taken for the writing one first."""
        self.servers = tuple(map(ShardServers, clients))
        self.loop = loop

    @property
    def clients(self) -> tuple[ShardClient, ...]:
        """The servers that take the writes of the shards."""
        return tuple(shard.clients[shard.writer] for shard in self.servers)

    def reading(self, deadline: Deadline, *, writer_first: bool = False) -> Fleet:
        """The same shards, of which each request is answered by whichever server does so first. deadline: of
        the requests; writer_first: others are asked where the writing server fails or is silent.
        """
        return _ReadingFleet(self, deadline, writer_first=writer_first)

    def __len__(self) -> int:
        return len(self.servers)

    def all(self, ask: Ask[Result]) -> list[Result]:
        """What each gives, in order. Raises the failure of the first that fails, once all have ended."""
        return list(self.require(dict.fromkeys(range(len(self)), ask)).values())

    def require(self, asks: Mapping[int, Ask[Result]]) -> dict[int, Result]:
        """What some shards give, by their numbers. Raises as `all`."""
        results: dict[int, Result] = {}
        for shard, outcome in self.outcomes(asks).items():
            if isinstance(outcome, Exception):
                raise outcome
            results[shard] = outcome
        return results

    def first_last(self, ask: Ask[Result]) -> list[Result]:
        """What each gives, in order, the first asked once all others have done it.

        The first says what there is: so a change is seen where all have made it, and one that was cut short
        can be repeated. Raises as `all`.
        """
        others = self.require(dict.fromkeys(range(1, len(self)), ask))
        return [self.one(0, ask), *others.values()]

    def remove(self, path: str, missing: type[Exception], deadline: Deadline = NO_DEADLINE) -> None:
        """Deletes what a path names in every shard, as `first_last`. Where one lacks it that is no error, as
        after a removal that was cut short, unless all do.
        """
        lacking: list[Exception] = []

        async def removed(shard: ShardClient) -> None:
            try:
                await shard.json("DELETE", path, deadline=deadline)
            except missing as error:
                lacking.append(error)

        self.first_last(removed)
        if len(lacking) == len(self):
            raise lacking[-1]

    def outcomes(self, asks: Mapping[int, Ask[Result]]) -> dict[int, Result | Exception]:
        """What some shards give or raise, by their numbers, once all have ended."""
        return self.run({shard: self._asked(shard, ask) for shard, ask in asks.items()})

    def run(self, work: Mapping[int, Coroutine[Any, Any, Result]]) -> dict[int, Result | Exception]:
        """What work on some shards gives or raises, by their numbers, once all has ended."""
        if not work:
            return {}
        shards = sorted(work)
        return dict(zip(shards, self.loop.run(outcomes([work[shard] for shard in shards])), strict=True))

    def one(self, shard: int, ask: Ask[Result]) -> Result:
        """What one gives or raises."""
        return self.loop.run(self._asked(shard, ask))

    async def _asked(self, shard: int, ask: Ask[Result]) -> Result:
        servers = self.servers[shard]
        writer = servers.writer
        try:
            return await ask(servers.clients[writer])
        except Exception as error:
            if not is_refused_by_replica(error):
                raise
            if servers.writer == writer:
                await servers.find_writer()
            if servers.writer == writer:
                raise unwritten(servers.name, error) from None
        return await ask(servers.clients[servers.writer])


class _ReadingFleet(Fleet):
    def __init__(self, fleet: Fleet, deadline: Deadline, *, writer_first: bool) -> None:
        self.servers, self.loop = fleet.servers, fleet.loop
        self._deadline = deadline
        self._writer_first = writer_first

    async def _asked(self, shard: int, ask: Ask[Result]) -> Result:
        servers = self.servers[shard]
        order = servers.order(writer_first=self._writer_first)
        return (await servers.ask(order, READ, ask, self._deadline))[1]
