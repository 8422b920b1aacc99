"""One thread that carries out operations in order, and forces those that wait to the disk together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from index.errors import SearchIndexError
from index.ledger.ledger import Ledger
from index.live.operations import Applied, Operation
from index.live.state import LiveState

GROUP = 64  # operations that share one force to the disk at most
_END = object()


@dataclass(frozen=True, slots=True)
class Written:
    """What was acknowledged: the collection's position, and the documents that the operation concerned."""

    position: int
    documents: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    operation: Operation
    written: Future[Written]


@dataclass(frozen=True, slots=True)
class _Change:
    """Of the state alone; the collection's documents stay the same."""

    change: Callable[[LiveState], LiveState]
    changed: Future[LiveState]


class Committer:
    """Holds the state of a live collection, and replaces it once an operation is on the disk."""

    def __init__(self, ledger: Ledger, state: LiveState) -> None:
        self._ledger = ledger
        self._state = state
        self._queue: queue.SimpleQueue[_Waiting | _Change | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="tercet-committer", daemon=True)
        self._thread.start()

    @property
    def state(self) -> LiveState:
        """The collection after the last operation that is on the disk."""
        return self._state

    def submit(self, operation: Operation) -> Future[Written]:
        """Puts an operation behind those that wait. Its future raises what it or the disk raises."""
        written: Future[Written] = Future()
        self._put(_Waiting(operation, written))
        return written

    def change(self, change: Callable[[LiveState], LiveState]) -> LiveState:
        """Carries out a change of where documents are, between two operations; returns the state after it."""
        changed: Future[LiveState] = Future()
        self._put(_Change(change, changed))
        return changed.result()

    def close(self) -> None:
        """Carries out what waits, and ends the thread."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _put(self, waiting: _Waiting | _Change) -> None:
        with self._closing:
            if self._closed:
                raise SearchIndexError(f"collection {self._state.settings.name!r} is closed for writing")
            self._queue.put(waiting)

    def _run(self) -> None:
        while True:
            group, following = self._next_group()
            if group:
                self._commit(group)
            if isinstance(following, _Change):
                self._apply(following)
            elif following is _END:
                return

    def _next_group(self) -> tuple[list[_Waiting], _Change | object]:
        """Operations that wait, and what ended them: a change, the end, or nothing."""
        group: list[_Waiting] = []
        waiting = self._queue.get()
        while isinstance(waiting, _Waiting):
            group.append(waiting)
            if len(group) == GROUP or self._queue.empty():
                return group, None
            waiting = self._queue.get()  # this thread alone takes from the queue
        return group, _END if waiting is None else waiting

    def _apply(self, waiting: _Change) -> None:
        try:
            self._state = waiting.change(self._state)
            waiting.changed.set_result(self._state)
        except Exception as error:  # noqa: BLE001 - the change's own failure, which its caller gets
            waiting.changed.set_exception(error)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        """Each operation sees those before it; all of them appear at once, or fail together at the disk."""
        state = self._state
        accepted: list[tuple[_Waiting, Applied]] = []
        for waiting in group:
            try:
                applied = waiting.operation.apply(state, state.position + 1)
            except Exception as error:  # noqa: BLE001 - the operation's own failure, which its caller gets
                waiting.written.set_exception(error)
                continue
            state = applied.state
            accepted.append((waiting, applied))
        entries = [applied.entry for _, applied in accepted if applied.entry is not None]
        try:
            if entries:
                last = self._ledger.append(entries, least_position=self._state.position + 1)
                assert last == state.position  # noqa: S101 - this process alone writes the ledger
        except Exception as error:  # noqa: BLE001 - the disk's failure, which all callers get
            for waiting, _ in accepted:
                waiting.written.set_exception(error)
            return
        self._state = state
        for waiting, applied in accepted:
            waiting.written.set_result(Written(applied.state.position, applied.documents))
