"""How a shard is reached: one method, so that HTTP and handles of Ray Serve do alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.settings.settings import Settings

Headers = Mapping[str, str]

NO_HEADERS: Headers = MappingProxyType({})
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ShardAccess:
    """How shards are asked: the key to send, the longest wait for an answer where a request has no deadline
    of its own, and the largest answer.
    """

    key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10
    answer_bytes: int = 2**30

    @staticmethod
    def of(settings: Settings) -> ShardAccess:
        """As the settings say."""
        key = settings.shards_key
        return ShardAccess(None if key is None else key.get_secret_value(), settings.shards_timeout_seconds)

    def left_seconds(self, deadline: Deadline) -> float:
        """For how long an answer is waited for from now on; 0 where it is too late."""
        left = deadline.remaining_seconds
        return self.timeout_seconds if left == math.inf else left


@dataclass(frozen=True, slots=True)
class ShardRequest:
    """What a shard is asked. path: with its query, percent-encoded. deadline: after which the answer is of no
    use; it is told to the shard. repeatable: whether it may be sent twice, where a connection broke before
    the answer.
    """

    method: str
    path: str
    headers: Headers = field(default_factory=dict)
    body: bytes = b""
    deadline: Deadline = NO_DEADLINE
    repeatable: bool = True

    @property
    def operation(self) -> str:
        """What a trace calls it: without a query."""
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """What a shard answered, whatever it says. headers: their names in lower case."""

    status: int
    headers: Headers
    body: bytes


class Transport(Protocol):
    """The way to one shard. Use from one event loop."""

    @property
    def name(self) -> str:
        """What the shard is called in errors and answers: its URL, or the name of its deployment."""
        ...

    async def request(self, request: ShardRequest) -> ShardAnswer:
        """Its answer to one request.

        Raises ShardUnavailableError, ShardTimeoutError, ShardFailedError for what is no answer, and
        DeadlineExceededError where the deadline passed before.
        """
        ...
