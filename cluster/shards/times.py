"""How long the servers of a shard take: which is expected to answer first, and when one takes long."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence

RECENT = 128  # answers to each operation, by which one takes long
RECENT_SECONDS = 60.0
ENOUGH = 20  # of these, before anything is said of them
LONG = 0.95  # the share of them that take no longer

WEIGHT = 0.2  # of the last answer in a mean
FORGOTTEN_SECONDS = 5.0  # after which a server that was not asked is known a third as well
SLOWER_WHERE_SILENT = 4.0  # times the usual, at the first silence or failure; doubled at each further one
SLOWEST = 1000.0
LEFT_SECONDS = 5.0  # for so long whoever left a server asks the others first
ALIKE = 1.25  # servers whose expected times differ by less are taken in their order

Clock = Callable[[], float]


class ServerTimes:
    """Of one server. waiting: how many requests it has not answered yet. Use from one event loop; any thread
    may read.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """clock: in seconds."""
        self._clock = clock
        self.waiting = 0
        self._slowness = 1.0  # how many times as long as usual its answers take
        self._told = clock()
        self._left = -math.inf
        self._recent: dict[str, deque[tuple[float, float]]] = {}

    @property
    def slowness(self) -> float:
        """How many times as long as the shard's usual time an answer takes; what was long ago counts less."""
        past = math.exp(-(self._clock() - self._told) / FORGOTTEN_SECONDS)
        return 1 + (self._slowness - 1) * past

    @property
    def expected(self) -> float:
        """How long the next answer takes with those that are waited for, in usual times; without end where it
        was left just now.
        """
        if self._clock() < self._left + LEFT_SECONDS:
            return math.inf
        return self.slowness * (self.waiting + 1)

    def answered(self, operation: str, seconds: float, usual_seconds: float) -> None:
        """It answered after so long."""
        recent = self._recent.setdefault(operation, deque(maxlen=RECENT))
        recent.append((self._clock(), seconds))
        ratio = min(seconds / max(usual_seconds, 1e-6), SLOWEST)
        self._tell(self.slowness + WEIGHT * (ratio - self.slowness))

    def silent(self) -> None:
        """It failed, or another one answered long before it did."""
        self._tell(min(max(SLOWER_WHERE_SILENT, 2 * self.slowness), SLOWEST))

    def left(self) -> None:
        """Requests that it had begun to answer begin anew elsewhere."""
        self.silent()
        self._left = self._clock()

    def long_seconds(self, operation: str) -> float | None:
        """The time within which most of its last answers came, None before there are enough of them."""
        since = self._clock() - RECENT_SECONDS
        recent = sorted(seconds for moment, seconds in self._recent.get(operation, ()) if moment >= since)
        return recent[math.ceil(LONG * len(recent)) - 1] if len(recent) >= ENOUGH else None

    def _tell(self, slowness: float) -> None:
        self._slowness, self._told = slowness, self._clock()


class ShardTimes:
    """Of the servers of a shard, in their order. Use from one event loop; any thread may read."""

    def __init__(self, servers: int, clock: Clock = time.monotonic) -> None:
        """clock: in seconds."""
        self.servers: Sequence[ServerTimes] = [ServerTimes(clock) for _ in range(servers)]
        self._usual_seconds: dict[str, float] = {}

    def answered(self, server: int, operation: str, seconds: float) -> None:
        """A server answered after so long."""
        usual = self._usual_seconds.get(operation, seconds)
        self._usual_seconds[operation] = usual = usual + WEIGHT * (seconds - usual)
        self.servers[server].answered(operation, seconds, usual)

    def order(self) -> list[int]:
        """The numbers of the servers, those first that are expected to answer first. Of those that are
        expected to take about as long as the fastest the first in their own order comes first.
        """
        expected = [times.expected for times in self.servers]
        least = ALIKE * min(expected)
        return sorted(range(len(expected)), key=lambda server: max(expected[server], least))

    def long_seconds(self, operation: str) -> float | None:
        """The least time within which a server gives most of its answers, None before that is known.

        It is the fastest one's, since a slow one that answers its share of requests has a long time itself.
        """
        known = [times.long_seconds(operation) for times in self.servers]
        return min((seconds for seconds in known if seconds is not None), default=None)
