"""Servers with a queue each, on a clock that jumps from event to event."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count

Action = Callable[[], None]


class Clock:
    """The time of a simulation, and what is to happen when. Events of one moment happen in order of their
    entry.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Action]] = []
        self._entered = count()

    def after(self, seconds: float, action: Action) -> None:
        """Has something happen in so many seconds."""
        heapq.heappush(self._events, (self.now + seconds, next(self._entered), action))

    def run(self) -> None:
        """Until nothing is left."""
        while self._events:
            self.now, _, action = heapq.heappop(self._events)
            action()


class Task:
    """Work of so many seconds, and what to do at its end. One that is cancelled while it waits is dropped."""

    __slots__ = ("cancelled", "done", "seconds")

    def __init__(self, seconds: float, done: Action) -> None:
        self.seconds = seconds
        self.done = done
        self.cancelled = False


class Station:
    """Some servers with one queue, first come, first served.

    slowness: what work takes there, as a multiple; open: whether it takes work at all.
    """

    def __init__(self, clock: Clock, servers: int) -> None:
        self.slowness = 1.0
        self.open = True
        self._clock = clock
        self._servers = servers
        self._busy = 0
        self._queue: deque[Task] = deque()

    @property
    def load(self) -> int:
        """Tasks in work or waiting."""
        return self._busy + len(self._queue)

    def take(self, task: Task) -> None:
        """Begins a task, or has it wait."""
        if self._busy < self._servers:
            self._begin(task)
        else:
            self._queue.append(task)

    def _begin(self, task: Task) -> None:
        self._busy += 1
        self._clock.after(task.seconds * self.slowness, partial(self._end, task))

    def _end(self, task: Task) -> None:
        self._busy -= 1
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.cancelled:
                self._begin(waiting)
                break
        task.done()
