"""Uvicorn's server with a pause before its end, in which it says that it is not ready and still serves."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

log = logging.getLogger("tercet")

_LOOK_SECONDS = 0.1  # how often a second signal is looked for, as Uvicorn does


class DrainingServer(uvicorn.Server):
    """Load balancers need a moment until they send nothing more: refused connections would be failures.

    Only SIGTERM leads to the pause, once. A keyboard's interrupt, a second signal or `should_exit` ends the
    server without it. Then the requests that were accepted are finished, as Uvicorn does.
    """

    def __init__(self, config: uvicorn.Config, drain_seconds: float, on_drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._drain_seconds = drain_seconds
        self._on_drain = on_drain
        self._draining = False
        self.listening: Callable[[], None] | None = None
        """Where set, called once connections are taken."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts the application, and takes connections."""
        await super().startup(sockets)
        if self.listening is not None and not self.should_exit:
            self.listening()

    async def main_loop(self) -> None:
        """Serves until the server is to end, and on through the pause."""
        await super().main_loop()
        self._on_drain()
        if self._draining and self._drain_seconds:
            log.info("SIGTERM: draining for %g s, in which requests are still taken", self._drain_seconds)
        end = time.monotonic() + self._drain_seconds
        while self._draining and time.monotonic() < end:
            await self.on_tick(0)  # keeps the header Date right
            await asyncio.sleep(_LOOK_SECONDS)
        log.info("stopping: requests under way are finished, and no more are taken")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finishes what is under way, and ends the application."""
        await super().shutdown(sockets)
        log.info("stopped")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Notes whether the signal leads to a pause."""
        self._draining = sig == signal.SIGTERM and not self.should_exit
        super().handle_exit(sig, frame)
