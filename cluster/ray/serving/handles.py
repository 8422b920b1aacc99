"""Applications in replicas, asked through handles of Ray Serve: shards, and encoders as workers."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tercet.cluster.errors import first_line
from tercet.cluster.shards.circuit import Circuit
from tercet.cluster.shards.transport import NO_HEADERS, ShardAccess, ShardAnswer, ShardRequest
from tercet.cluster.shards.watching import LOOK_SECONDS, LOOKED_AT, Watches
from tercet.service.exceptions import OverloadedError, ShardTimeoutError, ShardUnavailableError
from tercet.service.load.admission import too_late
from tercet.service.tracing.request import call

ENCODERS_URL = "http://encoders"  # of the setting encoder_urls, behind `HandleWorkers`
RETRY_SECONDS = 1.0


class HandleTransport:
    """The way to the one replica of a shard. Use from one event loop.

    A handle waits for a replica as long as it takes: the deadline is ours.
    """

    def __init__(self, name: str, handle: Any, access: ShardAccess) -> None:
        """handle: a `DeploymentHandle` of the shard."""
        self.name = name
        self.circuit = Circuit(name)
        self._request = plain(handle).answer
        self._access = access
        self._watches = Watches()

    async def request(self, request: ShardRequest) -> ShardAnswer:
        """Its answer: see `Transport`. Raises OverloadedError, too, where too many wait for it."""
        left_seconds = self._access.left_seconds(request.deadline)
        if left_seconds <= 0:
            raise too_late(0)
        self.circuit.require()
        try:
            return await self._asked(request, left_seconds)
        finally:
            self._watches.begin(self.circuit, self._is_there)

    async def _asked(self, request: ShardRequest, left_seconds: float) -> ShardAnswer:
        """The same, within so much time."""
        sent = {**request.headers, "X-Request-Timeout": f"{left_seconds:.3f}"}
        try:
            with call(request.operation, self.name) as trace_headers, _faults():
                asked = request.method, request.path, sent | trace_headers, request.body
                status, found, content = await _answer(self._request, asked, left_seconds)
        except TimeoutError:
            fault = f"shard {self.name} did not answer within {left_seconds:.3g} s"
            self.circuit.silent(fault, left_seconds)
            raise ShardTimeoutError(fault, self.name) from None
        except _QueueFullError as error:
            raise OverloadedError(f"shard {self.name}: {error}", RETRY_SECONDS, "shard") from None
        except _ReplicaLostError as error:
            fault = f"shard {self.name} gave no answer: {error}"
            self.circuit.failed(fault)
            raise ShardUnavailableError(fault, self.name, sent=True) from None
        self.circuit.answered()
        return ShardAnswer(status, found, content)

    async def _is_there(self) -> bool:
        try:
            with _faults():
                await _answer(self._request, ("GET", LOOKED_AT, dict(NO_HEADERS), b""), LOOK_SECONDS)
        except (TimeoutError, _QueueFullError, _ReplicaLostError):
            return False
        return True


class HandleWorkers(httpx.AsyncBaseTransport):
    """All encoders as one worker, of which Ray Serve asks one for each request. Use from one event loop."""

    def __init__(self, handle: Any) -> None:
        """handle: a `DeploymentHandle` of the encoders."""
        self._request = plain(handle).answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Its answer; of a queue that is full the one that a worker gives. Raises httpx.ConnectError."""
        body = await request.aread()
        # A key of workers, which none of these needs, goes no further.
        headers = {name: value for name, value in request.headers.items() if name not in LEFT_OUT}
        target = request.url.raw_path.decode("ascii")
        try:
            with _faults():
                status, found, content = await _answer(
                    self._request, (request.method, target, headers, body), math.inf
                )
        except _QueueFullError as error:
            status, found, content = _too_many(str(error))
        except _ReplicaLostError as error:
            raise httpx.ConnectError(str(error), request=request) from None
        return httpx.Response(status, headers=found, content=content, request=request)


LEFT_OUT = {"authorization", "connection", "content-length", "host", "user-agent"}


class _QueueFullError(Exception):
    """More requests wait for a replica than may."""


class _ReplicaLostError(Exception):
    """A replica ended before it answered, or none can be had."""


def plain(handle: Any) -> Any:
    """A handle for requests of bytes and strings alone, which take none of Ray's own way of pickling."""
    return handle.options(request_serialization="pickle", response_serialization="pickle")


async def _answer(
    method: Any, given: tuple[object, ...], seconds: float
) -> tuple[int, dict[str, str], bytes]:
    """Raises TimeoutError, after which the request is cancelled where it is."""
    response = method.remote(*given)
    try:
        async with asyncio.timeout(None if seconds == math.inf else seconds):
            answer: tuple[int, dict[str, str], bytes] = await response
    except (TimeoutError, asyncio.CancelledError):
        response.cancel()
        raise
    return answer


@contextmanager
def _faults() -> Iterator[None]:
    """Tells Ray's exceptions apart: it is imported in replicas alone."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import BackPressureError, RayServeException

    try:
        yield
    except BackPressureError as error:
        raise _QueueFullError(
            f"{error.args[0]} requests wait for it, as many as may (setting max_concurrent_requests): try "
            "again in a moment"
        ) from None
    except (RayError, RayServeException) as error:
        raise _ReplicaLostError(f"{type(error).__name__}: {first_line(error)}") from None


def _too_many(message: str) -> tuple[int, dict[str, str], bytes]:
    """What a worker answers that is overloaded."""
    headers = {"content-type": "application/json", "retry-after": f"{RETRY_SECONDS:.0f}"}
    return 429, headers, json.dumps({"error": {"message": message, "code": "overloaded"}}).encode()
