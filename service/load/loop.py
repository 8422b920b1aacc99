"""How late the event loop is with what is due: the part of every wait that no other line knows of."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable

BEAT_SECONDS = 0.025
MOST_SECONDS, MOST_SHARE = 0.2, 0.25  # of one beat: a single stop, however long, is no overload
USUAL_SECONDS = 0.02  # timers are late by milliseconds on any busy machine
MEMORY_SECONDS = 0.25  # a delay of now counts e times as much as one of so long before
STEPS = 2  # turns of the loop that a request takes: it begins, and is answered


class LoopDelay:
    """Measures it all the time, from one event loop."""

    def __init__(self, observe: Callable[[float], None] = lambda _: None) -> None:
        """observe: told how late each beat was, in seconds."""
        self._observe = observe
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = 0.0
        self.mean_seconds = 0.0  # of the last beats
        self._timer: asyncio.TimerHandle | None = None

    @property
    def seconds(self) -> float:
        """How late what is due now would run: as measured, or more where the next beat is late already."""
        if self._loop is None:
            return 0.0
        return max(self.mean_seconds, time.monotonic() - self._due)

    @property
    def wait_seconds(self) -> float:
        """How long a request waits for the loop alone, in all its turns; one late turn is no line."""
        return STEPS * self.mean_seconds if self.mean_seconds > USUAL_SECONDS else 0.0

    def start(self) -> None:
        """Measures from now on, in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._due = time.monotonic() + BEAT_SECONDS
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)

    def stop(self) -> None:
        """Measures no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._loop, self.mean_seconds = None, 0.0

    def _beat(self) -> None:
        assert self._loop is not None  # noqa: S101 - a beat that was cancelled does not come
        now = time.monotonic()
        late = max(0.0, now - self._due)
        share = min(MOST_SHARE, 1 - math.exp(-(BEAT_SECONDS + late) / MEMORY_SECONDS))
        self.mean_seconds += share * (min(late, MOST_SECONDS) - self.mean_seconds)
        self._observe(late)
        self._due = now + BEAT_SECONDS
        self._timer = self._loop.call_later(BEAT_SECONDS, self._beat)
