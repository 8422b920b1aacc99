"""Whether an encoder worker can be used: learnt by probes beside its traffic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import Enum

from tercet.models.errors import EncoderUnavailableError
from tercet.service.exceptions import WorkerSilentError

QUICK_SECONDS = 0.25  # between probes of a worker that is not known to be up

log = logging.getLogger("tercet")


class WorkerState(Enum):
    """What is known of a worker."""

    UP = "up"
    SUSPECTED = "suspected"  # something sent to it got no answer; asked where no other is up
    DOWN = "down"  # not asked


class WorkerHealth:
    """Probes one worker for as long as `watch` runs. Use from one event loop.

    Only silence and a failed probe count against it; an answer to a request, whatever it says, never does.
    """

    def __init__(
        self,
        name: str,
        probe: Callable[[WorkerState], Awaitable[None]],
        pause_seconds: float,
        silenced: Callable[[], None],
    ) -> None:
        """probe: raises WorkerSilentError, or another EncoderUnavailableError for what the worker answered.

        It is given the state, since one that comes back is asked more than one that is up.
        silenced: called when the worker hangs: what waits for its answers would wait in vain.
        """
        self.state = WorkerState.SUSPECTED
        self.fault = "it was not asked yet"
        self._name = name
        self._probe = probe
        self._pause_seconds = pause_seconds
        self._silenced = silenced
        self._answers = 0
        self._wake = asyncio.Event()

    def heard(self) -> None:
        """It answered a request: a probe without an answer in that time says nothing."""
        self._answers += 1

    def suspect(self, fault: str) -> None:
        """A request makes it doubtful that the worker can be used: probes it at once."""
        if self.state is WorkerState.UP:
            self._become(WorkerState.SUSPECTED, fault)
            self._wake.set()

    async def watch(self) -> None:
        """Probes it again and again, quickly while it is not up."""
        while True:
            up = self.state is WorkerState.UP
            pause_seconds = self._pause_seconds if up else min(QUICK_SECONDS, self._pause_seconds)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_seconds):
                    await self._wake.wait()
            self._wake.clear()
            await self.ask()

    async def ask(self) -> None:
        """Probes it once."""
        answers, state = self._answers, self.state
        try:
            await self._probe(state)
        except WorkerSilentError as error:
            if self._answers != answers:
                return
            if self.state is WorkerState.UP:
                self._become(WorkerState.SUSPECTED, str(error))
            else:
                self._become(WorkerState.DOWN, str(error))
                if error.hung:  # a connection that breaks tells those who wait by itself
                    self._silenced()
        except EncoderUnavailableError as error:
            self._become(WorkerState.DOWN, str(error))
        else:
            if self.state is state:  # else the next probe looks into what is suspected since this one began
                self._become(WorkerState.UP, "")

    def _become(self, state: WorkerState, fault: str) -> None:
        if state is not self.state:
            level = logging.INFO if state is WorkerState.UP else logging.WARNING
            log.log(level, "encoder worker %s is %s%s", self._name, state.value, fault and f": {fault}")
        self.state, self.fault = state, fault
