"""Encoders in replicas, asked as one worker through a handle of Ray Serve."""

from __future__ import annotations

import asyncio
from typing import Any

from tercet.cluster.errors import first_line
from tercet.service.exceptions import CallFailedError
from tercet.service.remote.transport import RemoteAnswer, RemoteRequest


class HandleTransport:
    """The way to encoders, of which Ray Serve asks one for each request. Use from one event loop.

    A handle waits for a replica as long as it takes.
    """

    def __init__(self, name: str, handle: Any) -> None:
        """handle: a `DeploymentHandle`."""
        self.name = name
        # Requests are bytes and strings alone, which take none of Ray's own way of pickling.
        plain = handle.options(request_serialization="pickle", response_serialization="pickle")
        self._answer = plain.answer

    async def request(self, request: RemoteRequest) -> RemoteAnswer:
        """The replica's answer: see `Transport`."""
        from ray.exceptions import RayError  # imported in replicas alone
        from ray.serve.exceptions import BackPressureError, RayServeException

        try:
            response = self._answer.remote(request.method, request.path, dict(request.headers), request.body)
            try:
                return RemoteAnswer(*await response)
            except asyncio.CancelledError:  # as where its time is over
                response.cancel()
                raise
        except BackPressureError as error:
            raise CallFailedError(
                "busy",
                f"{error.args[0]} requests wait for it, as many as may (setting max_concurrent_requests): "
                "try again in a moment",
            ) from None
        except (RayError, RayServeException) as error:
            raise CallFailedError(
                "broken", f"gave no answer: {type(error).__name__}: {first_line(error)}"
            ) from None
