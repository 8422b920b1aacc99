"""One shard, an ordinary Tercet server: what is sent to it, and what its answers mean."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import orjson

from tercet.cluster.shards.refusals import reading, refusal_of
from tercet.cluster.shards.transport import JSON, NO_HEADERS, Headers, ShardAnswer, ShardRequest, Transport
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.exceptions import ShardFailedError
from tercet.service.http.checksums import HEADER, request_checksums, sound_answer
from tercet.service.load.deadlines import NO_DEADLINE, Deadline

OK = range(200, 300)
LIMITS_SECONDS = 60.0  # for so long a shard's limits are taken as it told them


class ShardClient:
    """A shard behind its transport. Use from one event loop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._observer = ShardObserver()
        self._body_bytes = 0
        self._told = -LIMITS_SECONDS  # when, of `time.monotonic()`

    @property
    def name(self) -> str:
        """What it is called in errors and answers."""
        return self._transport.name

    def observe(self, observer: ShardObserver) -> None:
        """Tells it of every request from now on."""
        self._observer = observer
        observer.known(self.name, [self.name])

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
            found = await self.json("GET", "/info", deadline=deadline)
            with self.reading():
                self._body_bytes = int(found["limits"]["body_bytes"])
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
    ) -> ShardAnswer:
        """Its answer to a body of any type, of a status of success. is_message: whether body and answer have
        checksums in themselves.

        Raises what `Transport.request` raises, and for an answer of another status what `refusal_of` makes of
        it.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        given = {**headers, "Content-Type": content_type} if body or is_message else dict(headers)
        if not is_message:
            given[HEADER] = request_checksums(method, target, body)
        began = time.monotonic()
        try:
            request = ShardRequest(method, target, given, body, deadline, repeatable)
            answer = await self._transport.request(request)
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
        except Exception as error:
            self._observer.failed(self.name, error)
            raise
        return answer
