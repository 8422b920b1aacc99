"""A search server that tells for how long its event loop stood still: `GET /stopped` since it was last asked.

Time in which the loop's thread could run, but other threads had the processors, is told apart: on a busy
machine it is the doing of other processes.

Run by `serving.large` and `serving.fuzz`; settings come from the environment.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from tercet.service.app import create_app
from tercet.service.serving import run_server
from tercet.service.settings.reading import load_settings

BEAT_SECONDS = 0.001


SCHEDULING = Path("/proc/thread-self/schedstat")


class Heartbeat:
    """Beats on the event loop, and keeps by how much the latest beat was late."""

    def __init__(self) -> None:
        self._late_seconds = self._stopped_seconds = self._held_seconds = self._busy_seconds = 0.0

    async def beat(self) -> None:
        """Beats until it is cancelled."""
        while True:
            before, waited = time.perf_counter(), waited_seconds()
            used, own = time.process_time(), time.thread_time()
            await asyncio.sleep(BEAT_SECONDS)
            late = time.perf_counter() - before - BEAT_SECONDS
            stopped = late - (waited_seconds() - waited)
            # Whatever kept the loop waiting, in this thread or with the interpreter's lock in another, it
            # was no longer than what all threads together computed.
            held = min(stopped, time.process_time() - used)
            self._late_seconds = max(self._late_seconds, late)
            self._stopped_seconds = max(self._stopped_seconds, stopped)
            self._held_seconds = max(self._held_seconds, held)
            self._busy_seconds = max(self._busy_seconds, time.thread_time() - own)

    async def worst(self) -> dict[str, float]:
        """In milliseconds, since this was asked before: the longest stop, the latest beat, the most processor
        time for which the loop was held by whatever thread, and the most that its own took between two beats.
        """
        worst = {
            "stopped_ms": self._stopped_seconds,
            "late_ms": self._late_seconds,
            "held_ms": self._held_seconds,
            "busy_ms": self._busy_seconds,
        }
        self._late_seconds = self._stopped_seconds = self._held_seconds = self._busy_seconds = 0.0
        return {name: round(seconds * 1000, 2) for name, seconds in worst.items()}


def waited_seconds() -> float:
    """For how long this thread has waited for a processor so far."""
    return int(SCHEDULING.read_text(encoding="ascii").split()[1]) / 1e9


def watch(app: FastAPI) -> None:
    """Lets a heartbeat beat while the application runs, and adds `GET /stopped`."""
    heartbeat = Heartbeat()
    opened = app.router.lifespan_context

    @asynccontextmanager
    async def watched(served: FastAPI) -> AsyncIterator[None]:
        beating = asyncio.create_task(heartbeat.beat())
        async with opened(served):
            yield
        beating.cancel()

    app.router.lifespan_context = watched
    app.add_api_route("/stopped", heartbeat.worst, include_in_schema=False)


def main() -> None:
    settings = load_settings()
    app = create_app(settings)
    watch(app)
    run_server(app, settings)


if __name__ == "__main__":
    main()
