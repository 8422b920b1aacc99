"""Looks whether shards that are not asked for a moment answer again, so that no request has to try."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tercet.cluster.shards.circuit import Circuit

LOOKED_AT = "/health"
LOOK_SECONDS = 1.0  # for an answer, which says nothing but that there is one

Look = Callable[[], Awaitable[bool]]
"""Whether a shard answers within `LOOK_SECONDS`, whatever it says."""


class Watches:
    """Those of shards whose circuits are open. Use from one event loop."""

    def __init__(self) -> None:
        self._tasks: dict[Circuit, asyncio.Task[None]] = {}

    def begin(self, circuit: Circuit, look: Look) -> None:
        """Looks after a shard until its circuit is closed, if it is open."""
        if circuit.is_open and circuit not in self._tasks:
            task = self._tasks[circuit] = asyncio.create_task(_watch(circuit, look), name="watch")
            task.add_done_callback(lambda _: self._tasks.pop(circuit, None))

    async def end(self) -> None:
        """Looks no more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watch(circuit: Circuit, look: Look) -> None:
    while circuit.is_open:
        await asyncio.sleep(circuit.pause_seconds)
        if not circuit.is_wanted:
            circuit.let_ask(answers=False)
        elif await look():
            circuit.let_ask(answers=True)
