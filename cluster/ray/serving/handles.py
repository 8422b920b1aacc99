"""Applications in replicas, asked through handles of Ray Serve: shards, and encoders as workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tercet.cluster.errors import first_line
from tercet.service.exceptions import CallFailedError
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest

ENCODERS_URL = "http://encoders"  # of the setting encoder_urls, which a `HandleTransport` replaces


class HandleTransport:
    """The way to a deployment: the one replica of a shard, or encoders of which Ray Serve asks one for each
    request. Use from one event loop.

    A handle waits for a replica as long as it takes.
    """

    def __init__(self, name: str, handle: Any) -> None:
        """handle: a `DeploymentHandle`."""
        self.name = name
        self._answer = plain(handle).answer

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        """The replica's answer: see `Transport`."""
        with _faults():
            response = self._answer.remote(request.method, request.path, dict(request.headers), request.body)
            try:
                return RemoteAnswer(*await response)
            except asyncio.CancelledError:  # as where its time is over
                response.cancel()
                raise


def plain(handle: Any) -> Any:
    """A handle for requests of bytes and strings alone, which take none of Ray's own way of pickling."""
    return handle.options(request_serialization="pickle", response_serialization="pickle")


@contextmanager
def _faults() -> Iterator[None]:
    """Tells Ray's exceptions apart: it is imported in replicas alone."""
    from ray.exceptions import RayError
    from ray.serve.exceptions import BackPressureError, RayServeException

    try:
        yield
    except BackPressureError as error:
        raise CallFailedError(
            "busy",
            f"{error.args[0]} requests wait for it, as many as may (setting max_concurrent_requests): try "
            "again in a moment",
        ) from None
    except (RayError, RayServeException) as error:
        raise CallFailedError(
            "broken", f"gave no answer: {type(error).__name__}: {first_line(error)}"
        ) from None
