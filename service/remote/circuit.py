"""Whether a remote server can be used: learnt from calls to it, and from probes beside them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from tercet.service.exceptions import CallFailedError

FIRST_PAUSE_SECONDS = 0.25  # before a probe of a server that is not up
PATIENCE_SECONDS = 1.0  # a server that is silent for less may only have been given too little time
SHORT_SECONDS = 0.1  # a wait of less tells nothing
UNWANTED_SECONDS = 10.0  # after which nobody wants to know any more whether it answers

log = logging.getLogger("tercet")


class ServerState(Enum):
    """What is known of a server."""

    UP = "up"
    SUSPECTED = "suspected"  # calls to it failed, and no probe has said why
    DOWN = "down"  # probes of it fail


Probe = Callable[[ServerState], Awaitable[str]]
"""Asks a server in a state whether it can be used: what is wrong with its answer, "" for nothing. Raises
CallFailedError where there is no answer.
"""


@dataclass(frozen=True, slots=True)
class CircuitPolicy:
    """How servers of one kind are judged.

    kind: what logs call such a server. words: how they tell of a state; one without words is not logged.
    failures: of calls in a row, after which a server is suspected. longest_pause_seconds: between probes of
    one that fails again and again after a good probe. idle_seconds: between probes of one that is up; None
    where it is probed only while it is not, and as long as it is called. Then an answer to a call is enough
    for it to be up; else only a good probe is, and a probe in vain lets go of those who wait.
    """

    kind: str
    words: Mapping[ServerState, str]
    failures: int
    longest_pause_seconds: float
    idle_seconds: float | None = None


class Circuit:
    """What is known of one server. Use from one event loop.

    An answer to a call, whatever it says, never counts against the server.
    """

    def __init__(
        self,
        name: str,
        policy: CircuitPolicy,
        hung: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """hung: called where calls that wait would wait in vain; clock: in seconds."""
        self.state = ServerState.UP if policy.idle_seconds is None else ServerState.SUSPECTED
        self.fault = "it was not asked yet"
        self._name = name
        self._policy = policy
        self._hung = hung
        self._clock = clock
        self._answers = 0
        self._failures = 0
        self._silent_since = math.inf  # when the first call began that got no answer
        self._wanted = -math.inf  # when a call failed or was refused last
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._doubted = asyncio.Event()

    @property
    def pause_seconds(self) -> float | None:
        """Before the next probe; None where none is needed."""
        idle_seconds = self._policy.idle_seconds
        if self.state is ServerState.UP:
            return idle_seconds
        return self._pause_seconds if idle_seconds is None else min(self._pause_seconds, idle_seconds)

    def require(self) -> None:
        """Raises CallFailedError where the server is not up."""
        if self.state is ServerState.UP:
            return
        self._wanted = self._clock()
        raise CallFailedError(
            "paused", f"is not asked for a moment, since it failed {self._failures} times: {self.fault}"
        )

    def answered(self) -> None:
        """The server answered a call."""
        self._answers += 1
        self._failures = 0
        self._silent_since = math.inf
        self._pause_seconds = FIRST_PAUSE_SECONDS
        if self._policy.idle_seconds is None:
            self._become(ServerState.UP)

    def failed(self, fault: str) -> None:
        """A call got no answer, or one that makes it doubtful that the server can be used."""
        if self.state is not ServerState.UP:  # of calls that were under way as it stopped: nothing new
            return
        self._failures += 1
        if self._failures >= self._policy.failures:
            self._wanted = self._clock()
            self._become(ServerState.SUSPECTED, fault)
            self._doubted.set()

    def silent(self, fault: str, seconds: float) -> None:
        """A call waited in vain for so long. Such waits count together until there is an answer, as far as
        they are of use: each may have been too short by itself.
        """
        if seconds < SHORT_SECONDS:
            return
        now = self._clock()
        self._silent_since = min(self._silent_since, now - seconds)
        if now >= self._silent_since + PATIENCE_SECONDS:
            self.failed(fault)

    async def wait(self, seconds: float) -> None:
        """Returns after a pause; where the server is probed all the time, as soon as it is doubted."""
        if self._policy.idle_seconds is None:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._doubted.wait()
        self._doubted.clear()

    async def probe(self, probe: Probe) -> None:
        """Probes the server once. One that nobody wants is taken for up instead, and logged as nothing."""
        always_probed = self._policy.idle_seconds is not None
        if not always_probed and self._clock() >= self._wanted + UNWANTED_SECONDS:
            self.state, self._failures = ServerState.UP, self._policy.failures - 1
            return
        state, answers = self.state, self._answers
        try:
            fault = await probe(state)
        except CallFailedError as error:
            if self._answers != answers:  # it answers calls: a probe in vain says nothing
                return
            up = self.state is ServerState.UP
            self._become(ServerState.SUSPECTED if up else ServerState.DOWN, str(error))
            if always_probed and not up and error.kind == "silent":  # who waits sees a broken connection
                self._hung()
            return
        if fault:
            self._become(ServerState.DOWN, fault)
        elif self.state is state is not ServerState.UP:  # else it is suspected, or answered, since this began
            self._failures = self._policy.failures - 1
            self._pause_seconds = min(2 * self._pause_seconds, self._policy.longest_pause_seconds)
            self._become(ServerState.UP)

    def _become(self, state: ServerState, fault: str = "") -> None:
        if state is not self.state and state in self._policy.words:
            level = logging.INFO if state is ServerState.UP else logging.WARNING
            words = self._policy.words[state]
            log.log(level, "%s %s %s%s", self._policy.kind, self._name, words, fault and f": {fault}")
        self.state, self.fault = state, fault
