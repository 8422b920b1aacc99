"""The loops that probe remote servers, so that no request has to try whether one answers again."""

from __future__ import annotations

import asyncio

from tercet.service.remote.circuit import Circuit, Probe


class Probes:
    """The loops of several servers, ended together. Use from one event loop."""

    def __init__(self) -> None:
        self._tasks: dict[Circuit, asyncio.Task[None]] = {}

    def begin(self, circuit: Circuit, probe: Probe) -> None:
        """Probes a server for as long as its circuit needs it, if it does."""
        if circuit.pause_seconds is not None and circuit not in self._tasks:
            task = self._tasks[circuit] = asyncio.create_task(_probe_again(circuit, probe), name="probes")
            task.add_done_callback(lambda _: self._tasks.pop(circuit, None))

    async def end(self) -> None:
        """Probes no more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _probe_again(circuit: Circuit, probe: Probe) -> None:
    while (seconds := circuit.pause_seconds) is not None:
        await circuit.wait(seconds)
        await circuit.probe(probe)
