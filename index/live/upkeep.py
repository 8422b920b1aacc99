"""When a live collection is flushed and merged; writes wait while memory is full."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from tercet.index.errors import WriteOverloadedError
from tercet.index.live.committer import Committer
from tercet.index.live.flush import Flush
from tercet.index.live.merge import Merge, MergeStoppedError, Pace
from tercet.index.live.records import LiveLimits, LiveObserver
from tercet.index.live.threads import Alarm, Job, LiveThreads, Workers

RETRY_SECONDS = 5.0
MERGE_STOP_SECONDS = 10.0
FAST_WRITES = 2_000  # documents a second; one core builds a graph of about half as many
RESTS = 12.0  # seconds without work on a merge, for each that such writes were busy

log = logging.getLogger("tercet")


class Upkeep:
    """Flushes when it is time, and merges after each flush, in threads that other collections use, too.

    A long merge holds up no flush of its collection, and neither a write or a search. flushing, merging:
    under way, or waiting for a thread, or to be tried again.
    """

    def __init__(
        self,
        committer: Committer,
        flush: Flush,
        merge: Merge,
        limits: LiveLimits,
        observer: LiveObserver,
        threads: LiveThreads,
    ) -> None:
        """Takes up what those before left: writes to be flushed, and segments to be merged."""
        self._committer = committer
        self._flush = flush
        self._merge = merge
        self._limits = limits
        self._observer = observer
        self._threads = threads
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._oldest: float | None = None  # when the first unflushed write was made
        self._flush_given = self._merge_given = False  # to the threads
        self._flush_runs = self._merge_runs = False
        self._merge_again = False
        self._merges_from = -math.inf  # when a merge may begin
        self._alarms: dict[str, Alarm] = {}  # by what they are for
        self.flushing = self.merging = False
        with self._changed:
            if flush.is_due:
                self._wait_from_now()
            if merge.is_due:
                self._give_merge()

    @property
    def is_idle(self) -> bool:
        """Whether everything is in segments, and nothing under way."""
        with self._changed:
            return self._oldest is None and not (self._flush_given or self._merge_given or self._flush.is_due)

    def wrote(self) -> None:
        """To be called after each write."""
        with self._changed:
            if self._oldest is None:
                self._wait_from_now()
            if self._is_large():
                self._give_flush()

    def begin(self) -> None:
        """Has what was written flushed now, and segments merged after it."""
        with self._changed:
            self.flushing = True
            self._oldest = -math.inf
            self._give_flush()

    def put_off_merges(self, seconds: float) -> None:
        """No merge begins for so long from now on, and one that is under way is given up."""
        with self._changed:
            self._merges_from = time.monotonic() + seconds

    def wait_for_room(self) -> None:
        """Waits while memory is full. Raises WriteOverloadedError where that lasts too long."""
        deadline = time.monotonic() + self._limits.wait_seconds
        with self._changed:
            while self._is_full():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WriteOverloadedError(
                        f"memory holds {self._committer.state.memory_documents} documents that wait to be "
                        f"flushed; the limits are {self._limits.memory_documents} documents and "
                        f"{self._limits.memory_bytes} bytes: write again later"
                    )
                self._changed.wait(left)

    def close(self) -> None:
        """Ends the flush under way, and gives up a merge.

        To train IVF-PQ takes minutes and cannot be stopped: that thread is left behind. It publishes nothing
        any more, and what it writes is removed by who opens the collection next.
        """
        self._stopped.set()
        with self._changed:
            for alarm in self._alarms.values():
                alarm.cancel()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._flush_runs)
            self._changed.wait_for(lambda: not self._merge_runs, MERGE_STOP_SECONDS)
        self._merge.settle()

    def _wait_from_now(self) -> None:
        """Notes that something is to be flushed from now on; it is when it has waited long enough."""
        self._oldest = time.monotonic()
        self._set_alarm("look", self._oldest + self._limits.flush_seconds, self._look)

    def _look(self) -> None:
        """Has a flush begin where it is time."""
        with self._changed:
            if self._is_due():
                self._give_flush()

    def _is_due(self) -> bool:
        if self._oldest is None:
            return False
        return self._is_large() or time.monotonic() >= self._oldest + self._limits.flush_seconds

    def _give_flush(self) -> None:
        """Has a thread flush, unless one does already, or one waits to try again."""
        if not self._flush_given and not self._stopped.is_set():
            self._flush_given = True
            self._threads.flushes.submit(self._run_flush)

    def _give_merge(self) -> None:
        """Has a thread merge; where one does already, it looks once more at the end."""
        self.merging = self._merge_again = True
        if not self._merge_given and not self._stopped.is_set():
            self._merge_given = True
            self._threads.merges.submit(self._run_merge)

    def _run_flush(self) -> None:
        with self._changed:
            if self._stopped.is_set():
                return
            self._flush_runs = self.flushing = True
            self._oldest = None  # what is written from now on may belong to the next
        failure = None
        try:
            self._flush.run()
        except Exception as error:  # noqa: BLE001 - whatever it is: the writes are safe in the ledger
            failure = error
            self._failed("flush", error)
        with self._changed:
            self._flush_runs = False
            self._give_merge()  # first, so that one of the two is always told of
            if failure is not None:
                self._oldest = -math.inf
                self._try_again("flush", self._threads.flushes, self._run_flush)
            else:
                self._flush_given = self.flushing = False
                if self._is_due():
                    self._give_flush()
            self._changed.notify_all()

    def _run_merge(self) -> None:
        with self._changed:
            if self._stopped.is_set():
                return
            if self._puts_off():
                self._set_alarm(
                    "merge", self._merges_from, lambda: self._threads.merges.submit(self._run_merge)
                )
                return
            self._merge_runs, self._merge_again = True, False
        failure, again = None, False
        try:
            again = self._merge.run(_Pace(self._stopped, self._puts_off, self._committer))
        except MergeStoppedError:
            again = True
        except Exception as error:  # noqa: BLE001 - whatever it is: all is as before
            if not self._stopped.is_set():
                failure = error
                self._failed("merge", error)
        with self._changed:
            self._merge_runs = False
            if failure is not None:
                self._try_again("merge", self._threads.merges, self._run_merge)
            elif (again or self._merge_again) and not self._stopped.is_set():
                self._threads.merges.submit(self._run_merge)  # behind other collections
            else:
                self._merge_given = self.merging = False
            self._changed.notify_all()

    def _puts_off(self) -> bool:
        return time.monotonic() < self._merges_from

    def _failed(self, what: str, error: Exception) -> None:
        name = self._committer.state.settings.name
        log.error("collection %s: a %s failed and is tried again: %s", name, what, error)
        self._observer.failed(error)

    def _try_again(self, what: str, workers: Workers, job: Job) -> None:
        """Has it done again in a while; no thread waits for that."""
        self._set_alarm(what, time.monotonic() + RETRY_SECONDS, lambda: workers.submit(job))

    def _set_alarm(self, what: str, when: float, job: Job) -> None:
        """In the place of the one that was set for the same before."""
        former = self._alarms.get(what)
        if former is not None:
            former.cancel()
        if not self._stopped.is_set():
            self._alarms[what] = self._threads.alarms.call_at(when, job)

    def _is_large(self) -> bool:
        state, limits = self._committer.state, self._limits
        return state.memory_documents >= limits.flush_documents or state.memory_bytes >= limits.flush_bytes

    def _is_full(self) -> bool:
        state, limits = self._committer.state, self._limits
        return state.memory_documents >= limits.memory_documents or state.memory_bytes >= limits.memory_bytes


class _Pace(Pace):
    """Has a merge rest after each piece of work, where documents are written faster than it can keep up with.

    Priority alone does not keep caches and the way to memory free for the writes. Without rests they take a
    tenth longer while a graph is built, on a busy machine a fifth, and segments become more all the same.
    """

    def __init__(self, stopped: threading.Event, puts_off: Callable[[], bool], committer: Committer) -> None:
        self._stopped = stopped
        self._puts_off = puts_off
        self._committer = committer
        self._note()

    def rest(self) -> None:
        """Waits where writes are fast, in proportion to the time they took. Raises MergeStoppedError."""
        written = self._committer.written_documents - self._documents
        if written > FAST_WRITES * (time.perf_counter() - self._resumed):
            self._stopped.wait(RESTS * (self._committer.busy_seconds - self._busy))
        self.require_going()
        self._note()

    def require_going(self) -> None:
        """Raises MergeStoppedError once the collection is about to be closed, or merges are put off."""
        if self._stopped.is_set() or self._puts_off():
            raise MergeStoppedError("the merge was stopped; all is as before")

    def _note(self) -> None:
        self._documents, self._busy = self._committer.written_documents, self._committer.busy_seconds
        self._resumed = time.perf_counter()
