"""When clients are told that they were refused.

Nothing is to be won by asking again at once: else a client that does would cost the server more than one that
is served. So each refusal has a time of its own, so many a second of a client and of all. It slows down those
who ask again when they are answered. Those who do not wait for answers cannot be slowed down, so no more than
some refusals are held back.
"""

from __future__ import annotations

import math
import time
from heapq import heappop, heappush

from tercet.service.edge.allowance import Allowance

REFUSALS_PER_SECOND = 20.0  # that one client is told
ALL_REFUSALS_PER_SECOND = 50.0  # that all are told, so that little is taken from the work that they protect
MOST_HELD_SECONDS = 2.0  # those who come back as told are not to lose more time by it
MOST_HELD = 1000  # of all clients: each is a connection
LATELY_SECONDS = 1.0  # a client that was not refused for so long is told at once


class ClientRefusals:
    """Those of one client."""

    __slots__ = ("_allowance", "_last")

    def __init__(self) -> None:
        self._allowance = Allowance(REFUSALS_PER_SECOND)
        self._last = -math.inf

    def count(self, now: float) -> tuple[float, bool]:
        """The seconds until one more is told, and whether the client was refused lately."""
        was_lately = now - self._last <= LATELY_SECONDS
        self._last = now
        return self._allowance.owe(MOST_HELD_SECONDS), was_lately


class Refusals:
    """Those of all clients."""

    def __init__(self) -> None:
        self._allowance = Allowance(ALL_REFUSALS_PER_SECOND)
        self._ends: list[float] = []  # when those that are held will be told, as a heap

    def seconds(self, client: ClientRefusals) -> float:
        """Counts one; gives the seconds until its client is told."""
        now = time.monotonic()
        own_seconds, was_lately = client.count(now)
        seconds = self._allowance.owe(MOST_HELD_SECONDS)
        seconds = max(own_seconds, seconds) if was_lately else own_seconds
        while self._ends and self._ends[0] <= now:
            heappop(self._ends)
        if seconds == 0 or len(self._ends) >= MOST_HELD:
            return 0.0
        heappush(self._ends, now + seconds)
        return seconds
