"""A search server that tells for how long its event loop stood still: `GET /stopped` since it was last asked.

Time in which the loop's thread could run, but other threads had the processors, is told apart: on a busy
machine it is the doing of other processes.

Run by `serving.large`; settings come from the environment.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from service.app import create_app, run_server
from service.settings import load_settings

BEAT_SECONDS = 0.001


SCHEDULING = Path("/proc/thread-self/schedstat")


class Heartbeat:
    """Beats on the event loop, and keeps by how much the latest beat was late."""

    def __init__(self) -> None:
        self._late_seconds = self._stopped_seconds = 0.0

    async def beat(self) -> None:
        """Beats until it is cancelled."""
        while True:
            before, waited = time.perf_counter(), waited_seconds()
            await asyncio.sleep(BEAT_SECONDS)
            late = time.perf_counter() - before - BEAT_SECONDS
            self._late_seconds = max(self._late_seconds, late)
            self._stopped_seconds = max(self._stopped_seconds, late - (waited_seconds() - waited))

    async def worst(self) -> dict[str, float]:
        """The longest stop since this was asked before, and the latest beat, in milliseconds."""
        worst = {"stopped_ms": self._stopped_seconds, "late_ms": self._late_seconds}
        self._late_seconds = self._stopped_seconds = 0.0
        return {name: round(seconds * 1000, 2) for name, seconds in worst.items()}


def waited_seconds() -> float:
    """For how long this thread has waited for a processor so far."""
    return int(SCHEDULING.read_text(encoding="ascii").split()[1]) / 1e9


def main() -> None:
    settings = load_settings()
    app = create_app(settings)
    heartbeat = Heartbeat()
    opened = app.router.lifespan_context

    @asynccontextmanager
    async def watched(served: FastAPI) -> AsyncIterator[None]:
        beating = asyncio.create_task(heartbeat.beat())
        async with opened(served):
            yield
        beating.cancel()

    app.router.lifespan_context = watched
    app.add_api_route("/stopped", heartbeat.worst)
    run_server(app, settings)


if __name__ == "__main__":
    main()
