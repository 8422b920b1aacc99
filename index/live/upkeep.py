"""The threads of a live collection that flush and merge, and that make writes wait while memory is full."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from contextlib import suppress

from index.dense.library import leave_cores_to_others
from index.errors import WriteOverloadedError
from index.live.committer import Committer
from index.live.flush import Flush
from index.live.merge import Merge, MergeStoppedError
from index.live.records import LiveLimits, LiveObserver

FLUSH_NICENESS, MERGE_NICENESS = 5, 10  # more than the process has: less claim to the processor
RETRY_SECONDS = 5.0
MERGE_STOP_SECONDS = 10.0
FAST_WRITES = 2_000  # documents a second; one core builds a graph of about half as many
RESTS = 12.0  # seconds without work on a merge, for each that such writes were busy

log = logging.getLogger("tercet")


class Upkeep:
    """Flushes when it is time, and merges after each flush; each in a thread of its own.

    So a long merge holds up no flush, and neither a write or a search. flushing, merging: under way, or
    waiting to be tried again.
    """

    def __init__(
        self,
        committer: Committer,
        flush: Flush,
        merge: Merge,
        limits: LiveLimits,
        observer: LiveObserver,
    ) -> None:
        """Takes up what those before left: writes to be flushed, and segments to be merged."""
        self._committer = committer
        self._flush = flush
        self._merge = merge
        self._limits = limits
        self._observer = observer
        self._changed = threading.Condition()
        self._oldest = time.monotonic() if flush.is_due else None  # when the first unflushed write was made
        self.flushing = self.merging = False
        self._stopped = threading.Event()
        self._merge_wanted = threading.Event()
        if merge.is_due:
            self._merge_wanted.set()
        self._flushes = threading.Thread(target=self._run_flushes, name="tercet-flush", daemon=True)
        self._merges = threading.Thread(target=self._run_merges, name="tercet-merge", daemon=True)
        self._flushes.start()
        self._merges.start()

    def wrote(self) -> None:
        """To be called after each write."""
        with self._changed:
            if self._oldest is None:
                self._oldest = time.monotonic()
                self._changed.notify_all()  # the thread knows now how long to sleep
            elif self._is_large():
                self._changed.notify_all()

    def begin(self) -> None:
        """Has what was written flushed now, and segments merged after it."""
        with self._changed:
            self.flushing = True
            self._oldest = -math.inf
            self._changed.notify_all()

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
        self._merge_wanted.set()
        with self._changed:
            self._changed.notify_all()
        self._flushes.join()
        self._merges.join(MERGE_STOP_SECONDS)
        self._merge.settle()

    def _run_flushes(self) -> None:
        _yield_to_others(FLUSH_NICENESS)
        while self._wait_until_due():
            self.flushing = True
            try:
                self._flush.run()
            except Exception as error:  # noqa: BLE001 - whatever it is: the writes are safe in the ledger
                self._failed("flush", error)
                with self._changed:
                    self._oldest = time.monotonic() - self._limits.flush_seconds
            self.merging, self.flushing = True, False
            self._merge_wanted.set()
            with self._changed:
                self._changed.notify_all()

    def _run_merges(self) -> None:
        _yield_to_others(MERGE_NICENESS)
        while self._merge_wanted.wait() and not self._stopped.is_set():
            self._merge_wanted.clear()
            self.merging = True
            try:
                while not self._stopped.is_set() and self._merge.run(_Pace(self._stopped, self._committer)):
                    pass
            except Exception as error:  # noqa: BLE001 - whatever it is: all is as before
                if not self._stopped.is_set():
                    self._failed("merge", error)
                    self._merge_wanted.set()
            self.merging = False

    def _failed(self, what: str, error: Exception) -> None:
        """Tells of it, and waits before the next attempt."""
        name = self._committer.state.settings.name
        log.error("collection %s: a %s failed and is tried again: %s", name, what, error)
        self._observer.failed(error)
        self._stopped.wait(RETRY_SECONDS)

    def _wait_until_due(self) -> bool:
        """Waits until it is time for a flush; False where the end came first."""
        with self._changed:
            while not self._stopped.is_set():
                left = None
                if self._oldest is not None:
                    left = self._oldest + self._limits.flush_seconds - time.monotonic()
                    if left <= 0 or self._is_large():
                        self._oldest = None  # what is written from now on may belong to the next
                        return True
                self._changed.wait(left)
        return False

    def _is_large(self) -> bool:
        state, limits = self._committer.state, self._limits
        return state.memory_documents >= limits.flush_documents or state.memory_bytes >= limits.flush_bytes

    def _is_full(self) -> bool:
        state, limits = self._committer.state, self._limits
        return state.memory_documents >= limits.memory_documents or state.memory_bytes >= limits.memory_bytes


class _Pace:
    """Has a merge rest after each piece of work, where documents are written faster than it can keep up with.

    Priority alone does not keep caches and the way to memory free for the writes. Without rests they take a
    quarter longer while a graph is built, and segments become more all the same.
    """

    def __init__(self, stopped: threading.Event, committer: Committer) -> None:
        self._stopped = stopped
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
        """Raises MergeStoppedError once the collection is about to be closed."""
        if self._stopped.is_set():
            raise MergeStoppedError("the merge was stopped; all is as before")

    def _note(self) -> None:
        self._documents, self._busy = self._committer.written_documents, self._committer.busy_seconds
        self._resumed = time.perf_counter()


def _yield_to_others(niceness: int) -> None:
    """Lowers the priority of the calling thread and of those it starts, which leave half of the cores."""
    leave_cores_to_others()
    with suppress(OSError, AttributeError):  # elsewhere than on Linux, threads have no priority of their own
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, thread) + niceness)
