"""One shard, an ordinary Tercet server: what is sent to it, and what its answers mean."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import orjson

from tercet.cluster.shards.refusals import failure_of, reading, refusal_of
from tercet.index.errors import CollectionMovedError
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.exceptions import CallFailedError, ShardFailedError
from tercet.service.http.checksums import HEADER, request_checksums, sound_answer
from tercet.service.load.admission import too_late
from tercet.service.load.clients import PART_HEADER
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.remote.circuit import CircuitPolicy, ServerState
from tercet.service.remote.http import HttpConnections, HttpTransport
from tercet.service.remote.probes import Probes
from tercet.service.remote.server import RemoteServer
from tercet.service.remote.transport import JSON, NO_HEADERS, Headers, RemoteAnswer, RemoteRequest, Transport
from tercet.service.settings.settings import Settings

OK = range(200, 300)
LIMITS_SECONDS = 60.0  # for so long a shard's limits are taken as it told them
PROBED_PATH = "/health"
PROBE_SECONDS = 1.0  # for an answer, which says nothing but that there is one
SHARE_OF_SHARD = 0.95  # of the time that is left, so that a shard's own refusal comes before its end
SHARDS = CircuitPolicy(
    "shard",
    {ServerState.UP: "answers again", ServerState.SUSPECTED: "is not asked for a moment"},
    failures=3,
    longest_pause_seconds=5.0,
)


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

    def connections(self) -> HttpConnections:
        """Connections over which shards are asked so."""
        return HttpConnections(self.key, self.answer_bytes)

    def client(self, url: str, connections: HttpConnections) -> ShardClient:
        """A server of a shard over these."""
        return ShardClient(HttpTransport(url, connections), self.timeout_seconds, connections.probes)


class ShardClient:
    """A shard behind its transport. Use from one event loop."""

    def __init__(
        self, transport: Transport, timeout_seconds: float = 10, probes: Probes | None = None
    ) -> None:
        """timeout_seconds: for an answer to a request without a deadline; probes: where its own is one of
        several, by default alone.
        """
        self.server = RemoteServer(transport, SHARDS, self._probe, probes or Probes())
        self._timeout_seconds = timeout_seconds
        self._observer = ShardObserver()
        self._body_bytes = 0
        self._told = -LIMITS_SECONDS  # when, of `time.monotonic()`
        self._part: str | None = None
        self._refused: Callable[[], None] = lambda: None

    @property
    def name(self) -> str:
        """What it is called in errors and answers."""
        return self.server.name

    def observe(self, observer: ShardObserver) -> None:
        """Tells it of every request from now on."""
        self._observer = observer
        observer.known(self.name, [self.name])

    def expect_part(self, tag: str, refused: Callable[[], None]) -> None:
        """Tells it from now on which part of a collection it is taken for. refused: is told when it has
        another one by now.
        """
        self._part, self._refused = tag, refused

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Within it, whatever is wrong with its answer is its fault: ShardFailedError."""
        try:
            with reading(self.name):
                yield
        except ShardFailedError as error:
            self._observer.failed(self.name, error)
            raise

    async def json(
        self,
        method: str,
        path: str,
        value: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        deadline: Deadline = NO_DEADLINE,
        repeatable: bool = True,
    ) -> Any:
        """What it answers as JSON; None for an answer without a body. Raises as `send`.

        path: percent-encoded; value: the body, none where it is None.
        """
        body = b"" if value is None else orjson.dumps(value)
        answer = await self.send(method, path, body, query=query, deadline=deadline, repeatable=repeatable)
        if not answer.body:
            return None
        with self.reading():
            return orjson.loads(answer.body)

    async def largest_body_bytes(self, deadline: Deadline = NO_DEADLINE) -> int:
        """The largest body of a request that it takes. Raises as `send`."""
        if time.monotonic() >= self._told + LIMITS_SECONDS:
            info = await self.json("GET", "/info", deadline=deadline)
            with self.reading():
                self._body_bytes = int(info["limits"]["body_bytes"])
            self._told = time.monotonic()
        return self._body_bytes

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        *,
        headers: Headers = NO_HEADERS,
        query: Mapping[str, str] | None = None,
        deadline: Deadline = NO_DEADLINE,
        repeatable: bool = True,
        is_message: bool = False,
        of_part: bool = True,
    ) -> RemoteAnswer:
        """Its answer to a body of any type, of a status of success. is_message: whether body and answer have
        checksums in themselves; of_part: whether it answers only as the part of a collection that it is taken
        for.

        Raises what `failure_of` and `refusal_of` make of no answer and of one of another status, and
        DeadlineExceededError where the deadline has passed.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        given = {**headers, "Content-Type": content_type} if body or is_message else dict(headers)
        if not is_message:
            given[HEADER] = request_checksums(method, target, body)
        if of_part and self._part is not None:
            given[PART_HEADER] = self._part
        began = time.monotonic()
        try:
            left_seconds = self._left_seconds(deadline)
            given["X-Request-Timeout"] = f"{SHARE_OF_SHARD * left_seconds:.3f}"
            self.server.circuit.require()
            request = RemoteRequest(method, target, given, body, repeatable)
            answer = await self.server.call(request, left_seconds)
            self._observer.answered(self.name, time.monotonic() - began, len(body), len(answer.body))
            sound = sound_answer(answer.body, answer.headers.get(HEADER))
            if sound is None:
                raise ShardFailedError(
                    f"the answer of shard {self.name} was damaged on its way: its checksum is another",
                    self.name,
                )
            answer = replace(answer, body=sound)
            if answer.status not in OK:
                raise refusal_of(self.name, answer)
        except CallFailedError as error:
            failure = failure_of(self.name, error)
            self._observer.failed(self.name, failure)
            raise failure from None
        except CollectionMovedError:
            self._refused()
            raise
        except Exception as error:
            self._observer.failed(self.name, error)
            raise
        return answer

    def _left_seconds(self, deadline: Deadline) -> float:
        """For how long an answer is waited for. Raises DeadlineExceededError where it is too late."""
        left_seconds = deadline.remaining_seconds
        if left_seconds <= 0:
            raise too_late(0)
        return self._timeout_seconds if left_seconds == math.inf else left_seconds

    async def _probe(self, _state: ServerState) -> str:
        await self.server.ask(RemoteRequest("GET", PROBED_PATH), PROBE_SECONDS)
        return ""
