"""All shards at once: what each answers, and which were lost.

All that one request asks of a shard is of one of its servers, which is the one that answers it first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeVar
from urllib.parse import quote

from tercet.cluster.shards.calls import outcomes
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.refusals import is_of_server
from tercet.cluster.shards.servers import Ask
from tercet.index.errors import CollectionMovedError, InvalidQueryError, SearchIndexError
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.exceptions import BegunAgainError, RelayedError, ShardFailedError
from tercet.service.load.deadlines import Deadline, within
from tercet.service.load.reading import Reading
from tercet.service.shard.messages import COLLECTIONS

DESCRIPTION = "description"  # the operation that says which part of a collection a shard is
SHARE = 0.5  # of the time that is left, which a shard may take where others are enough
SOON_SECONDS = 2.0  # half of which a writing server may take to describe a collection

Answer = TypeVar("Answer")
Queries = Callable[[int, str], Mapping[str, str]]
"""What is in a request's path, by the shard's number and the server's name."""


class FanOut:
    """The shards of one collection, asked on behalf of one request; `lost` has those that gave no answer,
    where that was allowed. Use from the event loop, but for the properties.
    """

    def __init__(self, fleet: Fleet, collection: str, how: Reading) -> None:
        """collection: its name or an alias."""
        self._fleet = fleet
        self._orders = [[servers.writer] if how.newest else servers.order() for servers in fleet.servers]
        self._last: dict[int, list[int]] = {}  # servers that are asked where all others fail
        self._kept: dict[int, int] = {}  # the server of each shard that has answered
        self._describers: dict[int, int] = {}
        self._path = f"{COLLECTIONS}/{quote(collection)}"
        self._how = how
        self._lost: dict[int, str] = {}
        self._last_failure: Exception | None = None

    def __len__(self) -> int:
        return len(self._fleet)

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of shards that gave no answer, in order."""
        return tuple(name for _, name in sorted(self._lost.items()))

    @property
    def servers(self) -> tuple[str, ...]:
        """The server of each shard that is asked first, or has answered."""
        return tuple(self.server_of(shard) for shard in range(len(self)))

    def server_of(self, shard: int) -> str:
        """That of one shard."""
        return self._client_of(shard).name

    def describer_of(self, shard: int) -> str:
        """The one that answered what the writing server is asked first."""
        return self._describing(shard).name

    def ask_last(self, names: Collection[str]) -> None:
        """Asks these servers where all others of their shards fail. Before the first request."""
        for shard, servers in enumerate(self._fleet.servers) if names else ():
            order = self._orders[shard]
            last = [server for server in order if servers.clients[server].name in names]
            if 0 < len(last) < len(order):
                self._orders[shard] = [server for server in order if server not in last]
                self._last[shard] = last

    def turn_away(self, shard: int) -> bool:
        """Asks the other servers of a shard than the one that answered, if there are any; whether there are.
        Before anything depends on what it answered.
        """
        kept = self._kept[shard]
        others = [each for each in (*self._orders[shard], *self._last.get(shard, ())) if each != kept]
        if not others:
            return False
        self._orders[shard] = others
        self._last.pop(shard, None)
        del self._kept[shard]
        return True

    def reading(self, shard: int) -> AbstractContextManager[None]:
        """Within it, whatever is wrong with what a shard answered is its fault: ShardFailedError."""
        return self._client_of(shard).reading()

    @property
    def of_newest(self) -> bool:
        """Whether only what the writing servers have is an answer."""
        return self._how.newest

    @property
    def may_begin_again(self) -> bool:
        """Whether whoever asks begins anew at BegunAgainError."""
        return self._how.may_begin_again

    def is_lost(self, shard: int) -> bool:
        """Whether a shard gave no answer."""
        return shard in self._lost

    async def ask(
        self,
        operation: str,
        bodies: Sequence[bytes | None],
        read: Callable[[int, bytes], Answer],
        queries: Queries = lambda _shard, _server: {},
        *,
        of_writer: bool = False,
    ) -> list[Answer | None]:
        """What each shard that has a body answers, as `read` takes it from the shard's number and its
        body; None of one that has none or is lost.

        of_writer: replicas are asked only where the writing server fails, and nothing else has to come from
        the same. Raises as `ShardClient.send`; what cannot be read is the fault of the shard. Raises
        BegunAgainError where one was lost that has begun something, and whoever asks may begin anew.
        """
        asked = [shard for shard, body in enumerate(bodies) if body is not None and shard not in self._lost]
        answers: list[Answer | None] = [None] * len(bodies)
        send = self._of_writer if of_writer else self._of_kept
        found = await outcomes(
            [
                send(shard, operation, self._request(shard, operation, bodies[shard] or b"", queries))
                for shard in asked
            ]
        )
        for shard, answer in zip(asked, found, strict=True):
            try:
                if isinstance(answer, Exception):
                    raise answer
                answers[shard] = self._read(shard, answer, read, of_writer=of_writer)
            except Exception as error:
                if isinstance(error, CollectionMovedError):
                    raise BegunAgainError(str(error)) from None
                if isinstance(error, RelayedError) and error.code == "invalid_query":
                    raise InvalidQueryError(str(error)) from None
                unreadable = answer is not error and isinstance(error, ShardFailedError)
                if unreadable and not of_writer and self._may_leave(shard):
                    servers = self._fleet.servers[shard]
                    raise servers.leave(self._kept.get(shard, servers.writer)) from error
                if not (self._how.allow_partial and is_of_server(error)):
                    raise
                self._lost[shard] = self._fleet.clients[shard].name
                self._last_failure = error
        if self._last_failure is not None and len(self._lost) == len(self._fleet):
            raise self._last_failure
        return answers

    async def ask_replicas(
        self, operation: str, read: Callable[[int, bytes], Answer], seconds: float
    ) -> dict[int, Answer]:
        """What a replica of each shard answers whose writing server has described the collection, by the
        shards' numbers; of those that have none, or none that answers in time, nothing.
        """
        deadline = within(min(seconds, self._deadline().remaining_seconds))
        asks = {
            shard: servers.ask(
                servers.replicas,
                operation,
                self._request(shard, operation, b"", lambda _shard, _server: {}, deadline),
                deadline,
            )
            for shard, servers in enumerate(self._fleet.servers)
            if len(servers) > 1 and self._describers.get(shard) == servers.writer
        }
        answers: dict[int, Answer] = {}
        for shard, found in zip(asks, await outcomes(list(asks.values())), strict=True):
            if not isinstance(found, Exception):
                server, body = found
                with (
                    suppress(ShardFailedError, SearchIndexError),
                    self._fleet.servers[shard].clients[server].reading(),
                ):
                    answers[shard] = read(shard, body)
        return answers

    def _request(
        self, shard: int, operation: str, body: bytes, queries: Queries, until: Deadline | None = None
    ) -> Ask[bytes]:
        deadline = until or self._deadline()

        async def ask(client: ShardClient) -> bytes:
            path, query = f"{self._path}/{operation}", queries(shard, client.name)
            answer = await client.send(
                "POST",
                path,
                body,
                MEDIA_TYPE,
                query=query,
                deadline=deadline,
                is_message=True,
                of_part=operation != DESCRIPTION,
            )
            return answer.body

        return ask

    async def _of_kept(self, shard: int, operation: str, ask: Ask[bytes]) -> bytes:
        """What the server gives that the request keeps to, from its first answer on."""
        servers, kept = self._fleet.servers[shard], self._kept.get(shard)
        if kept is None:
            server, answer = await self._of_first(shard, operation, ask)
            kept = self._kept.setdefault(shard, server)
            if kept == server:
                return answer
        if self._may_leave(shard):
            return await servers.go_on(kept, operation, ask, self._deadline())
        return await servers.ask_one(kept, operation, ask)

    async def _of_first(self, shard: int, operation: str, ask: Ask[bytes]) -> tuple[int, bytes]:
        """What the first server gives that does, and which one that is."""
        servers, last = self._fleet.servers[shard], self._last.get(shard)
        try:
            return await servers.ask(self._orders[shard], operation, ask, self._deadline())
        except Exception as error:
            if last is None or not servers.passes_over(servers.writer, error):
                raise
        servers.observer.failed_over(servers.name)
        return await servers.ask(last, operation, ask, self._deadline())

    async def _of_writer(self, shard: int, operation: str, ask: Ask[bytes]) -> bytes:
        servers = self._fleet.servers[shard]
        order = [servers.writer] if self._how.newest else servers.order(writer_first=True)
        soon = Deadline(min(self._deadline().moment, time.monotonic() + SOON_SECONDS))
        self._describers[shard], answer = await servers.ask(order, operation, ask, soon)
        return answer

    def _client_of(self, shard: int) -> ShardClient:
        server = self._kept.get(shard, self._orders[shard][0])
        return self._fleet.servers[shard].clients[server]

    def _describing(self, shard: int) -> ShardClient:
        servers = self._fleet.servers[shard]
        return servers.clients[self._describers.get(shard, servers.writer)]

    def _may_leave(self, shard: int) -> bool:
        """Whether the request may begin anew at another server of a shard."""
        return self._how.may_begin_again and not self._how.newest and len(self._fleet.servers[shard]) > 1

    def _deadline(self) -> Deadline:
        """When a shard is given up: early enough to go on without it, where that is allowed."""
        deadline = self._how.deadline
        if not self._how.allow_partial or len(self._fleet) == 1:
            return deadline
        return Deadline(time.monotonic() + SHARE * deadline.remaining_seconds)

    def _read(
        self, shard: int, body: bytes, read: Callable[[int, bytes], Answer], *, of_writer: bool
    ) -> Answer:
        client = self._describing(shard) if of_writer else self._client_of(shard)
        name = client.name
        with client.reading():
            try:
                return read(shard, body)
            except SearchIndexError as error:
                raise ShardFailedError(f"shard {name} answered what cannot be used: {error}", name) from None


def query_of(query: Mapping[str, str | None]) -> dict[str, str]:
    """The query of a path: those of its parameters that have a value."""
    return {name: value for name, value in query.items() if value is not None}
