"""All shards at once, for threads that wait: what each answers, and which were lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from cluster.shards.client import ShardClient
from cluster.shards.fleet import Fleet
from index.errors import InvalidQueryError, SearchIndexError
from service.answers.binary import MEDIA_TYPE
from service.exceptions import OverloadedError, RelayedError, ShardError, ShardFailedError
from service.load.deadlines import Deadline
from service.load.reading import Reading
from service.shard.messages import Message

SHARE = 0.5  # of the time that is left, which a shard may take where others are enough

Answer = TypeVar("Answer")


class Asking:
    """The shards of one collection, asked on behalf of one request; `lost` has those that gave no answer,
    where that was allowed. Safe to use from several threads.
    """

    def __init__(self, fleet: Fleet, collection: str, how: Reading) -> None:
        """collection: its name or an alias."""
        self._fleet = fleet
        self._path = f"/shard/collections/{quote(collection)}"
        self._how = how
        self._lost: dict[int, str] = {}
        self._last_failure: Exception | None = None

    def __len__(self) -> int:
        return len(self._fleet)

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of shards that gave no answer, in order."""
        return tuple(name for _, name in sorted(self._lost.items()))

    def name_of(self, shard: int) -> str:
        """What a shard is called."""
        return self._fleet.clients[shard].name

    def reading(self, shard: int) -> AbstractContextManager[None]:
        """Within it, whatever is wrong with what a shard answered is its fault: ShardFailedError."""
        return self._fleet.clients[shard].reading()

    def is_lost(self, shard: int) -> bool:
        """Whether a shard gave no answer."""
        return shard in self._lost

    def ask(
        self,
        operation: str,
        bodies: Sequence[bytes | None],
        read: Callable[[int, Message], Answer],
        queries: Sequence[Mapping[str, str]] | None = None,
    ) -> list[Answer | None]:
        """What each shard that has a body answers, as `read` takes it from the shard's number and its
        message; None of one that has none or is lost.

        queries: of each request, in its path. Raises as `ShardClient.send`; what cannot be read is the fault
        of the shard.
        """
        asked = [shard for shard, body in enumerate(bodies) if body is not None and shard not in self._lost]
        answers: list[Answer | None] = [None] * len(bodies)
        found = self._fleet.outcomes(
            {
                shard: partial(
                    self._sent,
                    operation=operation,
                    body=bodies[shard] or b"",
                    query=None if queries is None else queries[shard],
                )
                for shard in asked
            }
        )
        for shard, answer in found.items():
            try:
                if isinstance(answer, Exception):
                    raise answer
                answers[shard] = self._read(shard, answer, read)
            except Exception as error:
                if isinstance(error, RelayedError) and error.code == "invalid_query":
                    raise InvalidQueryError(str(error)) from None
                if not (self._how.allow_partial and _is_of_shard(error)):
                    raise
                self._lost[shard] = self._fleet.clients[shard].name
                self._last_failure = error
        if self._last_failure is not None and len(self._lost) == len(self._fleet):
            raise self._last_failure
        return answers

    async def _sent(
        self, client: ShardClient, operation: str, body: bytes, query: Mapping[str, str] | None
    ) -> bytes:
        path = f"{self._path}/{operation}"
        answer = await client.send("POST", path, body, MEDIA_TYPE, query=query, deadline=self._deadline())
        return answer.body

    def _deadline(self) -> Deadline:
        """When a shard is given up: early enough to go on without it, where that is allowed."""
        deadline = self._how.deadline
        if not self._how.allow_partial or len(self._fleet) == 1:
            return deadline
        return Deadline(time.monotonic() + SHARE * deadline.remaining_seconds)

    def _read(self, shard: int, body: bytes, read: Callable[[int, Message], Answer]) -> Answer:
        name = self._fleet.clients[shard].name
        with self.reading(shard):
            try:
                return read(shard, Message.read(body))
            except SearchIndexError as error:
                raise ShardFailedError(f"shard {name} answered what cannot be used: {error}", name) from None


def given(query: Mapping[str, str | None]) -> dict[str, str]:
    """What is there of a path's query."""
    return {name: value for name, value in query.items() if value is not None}


def _is_of_shard(error: Exception) -> bool:
    """Whether an error concerns one shard alone, and not the request."""
    if isinstance(error, RelayedError):
        return error.shard is not None
    return isinstance(error, ShardError | OverloadedError)
