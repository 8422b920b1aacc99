"""The threads that all live collections of a process share, so that a thousand need no more than a few.

Each collection has its operations carried out in order, one flush and one merge at a time, but by whichever
thread is free. A thread begins when there is work that no idle one takes.
"""

from __future__ import annotations

import heapq
import logging
import queue
import threading
import time
from collections.abc import Callable
from itertools import count

from tercet.index.dense.library import leave_cores_to_others
from tercet.models.priority import yield_to_main_thread

COMMITTERS, FLUSHES, MERGES = 12, 4, 4
FLUSH_NICENESS, MERGE_NICENESS = 10, 15  # below the main thread, and below those that serve requests

START_SECONDS = 1.0  # until the next attempt to start a thread

log = logging.getLogger("tercet")

Job = Callable[[], None]


class Alarm:
    """Something to be called at a time. It may be cancelled, and then keeps nothing in memory."""

    def __init__(self, job: Job) -> None:
        self._job: Job | None = job

    def cancel(self) -> None:
        """It is not called any more."""
        self._job = None

    def ring(self) -> None:
        """Calls it, unless it was cancelled."""
        job = self._job
        try:
            if job is not None:
                job()
        except Exception:  # the alarms of others must go on
            log.exception("an alarm of a live collection failed")


class Alarms:
    """One thread that calls what is due at a time; calls must be short."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Alarm]] = []  # a heap
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._closed = False

    def call_at(self, when: float, job: Job) -> Alarm:
        """Calls it at a time of `time.monotonic()`, or soon where that is past."""
        alarm = Alarm(job)
        with self._changed:
            heapq.heappush(self._due, (when, next(self._numbers), alarm))
            if self._thread is None and not self._closed:  # by who opens a collection, at its own priority
                self._thread = threading.Thread(target=self._run, name="tercet-upkeep", daemon=True)
                self._thread.start()
            elif self._due[0][2] is alarm:  # the thread knows now how long to sleep
                self._changed.notify()
        return alarm

    def close(self) -> None:
        """Calls nothing any more."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()

    def _run(self) -> None:
        while (alarm := self._next()) is not None:
            alarm.ring()
            del alarm  # else it would be kept in memory until the next one

    def _next(self) -> Alarm | None:
        """What is due, once something is; None at the end."""
        with self._changed:
            while not self._closed:
                left = None if not self._due else self._due[0][0] - time.monotonic()
                if left is not None and left <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(left)
        return None


class Workers:
    """Up to so many threads of one name, which do what they are given in order. Jobs raise nothing; what one
    does all the same is logged.
    """

    def __init__(self, name: str, most: int, alarms: Alarms, niceness: int = 0) -> None:
        """alarms: whose thread starts these.

        niceness: above 0 for threads that leave the processor to others.
        """
        self._name = name
        self._alarms = alarms
        self._most = most
        self._niceness = niceness
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._open = 0  # jobs given and not done
        self.threads: list[threading.Thread] = []

    def submit(self, job: Job) -> None:
        """Has a job done by the next thread that is free."""
        with self._lock:
            self._open += 1
            if self._open > len(self.threads) < self._most:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self.threads.append(thread)
                self._alarms.call_at(0.0, lambda: self._begin(thread))
        self._jobs.put(job)

    def close(self) -> None:
        """Ends the threads once nothing waits any more; does not wait for that."""
        with self._lock:
            for _ in self.threads:
                self._jobs.put(None)

    def _begin(self, thread: threading.Thread) -> None:
        """Starts a thread; where the system has none left, in a while."""
        try:
            thread.start()
        except RuntimeError as error:
            log.error("a thread %s could not be started and is tried again: %s", self._name, error)
            self._alarms.call_at(time.monotonic() + START_SECONDS, lambda: self._begin(thread))

    def _run(self) -> None:
        if self._niceness:
            leave_cores_to_others()
            yield_to_main_thread(self._niceness)
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:  # what others wait for must go on
                log.exception("a job of a live collection failed")
            with self._lock:
                self._open -= 1
            del job  # else an idle thread would keep what it did last in memory


class LiveThreads:
    """What carries out operations, flushes and merges of all live collections that are given this."""

    def __init__(self) -> None:
        self.alarms = Alarms()
        self.committers = Workers("tercet-committer", COMMITTERS, self.alarms)
        self.flushes = Workers("tercet-flush", FLUSHES, self.alarms, FLUSH_NICENESS)
        self.merges = Workers("tercet-merge", MERGES, self.alarms, MERGE_NICENESS)

    def close(self) -> None:
        """Ends all threads, once all collections are closed; leaves a merge behind that cannot be stopped."""
        self.alarms.close()
        for workers in (self.committers, self.flushes, self.merges):
            workers.close()
