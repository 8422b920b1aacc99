"""Carries out a collection's operations in order, and forces those that wait to the disk together."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tercet.index.catalog.fence import fenced
from tercet.index.errors import SearchIndexError, WriteUnknownError
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.records import LedgerEntry
from tercet.index.ledger.remote import RemoteLedger
from tercet.index.live.operations import Operation, unchanged
from tercet.index.live.records import LiveObserver, WriteKey, Written
from tercet.index.live.replay import replay
from tercet.index.live.state import LiveState
from tercet.index.live.threads import Workers

GROUP = 64  # operations that share one force to the disk at most


@dataclass(frozen=True, slots=True)
class _Waiting:
    operation: Operation
    key: WriteKey | None
    tokens: int
    written: Future[Written]


@dataclass(frozen=True, slots=True)
class _Accepted:
    """An operation that was carried out on the state; entry: what the ledger gets of it, if anything."""

    written: Future[Written]
    answer: Written
    entry: LedgerEntry | None


@dataclass(frozen=True, slots=True)
class _Change:
    """Of the state alone; the collection's documents stay the same."""

    change: Callable[[LiveState], LiveState]
    changed: Future[LiveState]


class Committer:
    """Holds the state of a live collection, and replaces it once an operation is on the disk."""

    def __init__(
        self,
        ledger: Ledger,
        state: LiveState,
        workers: Workers,
        observer: LiveObserver | None = None,
        *,
        is_fenced: bool = False,
        remote: RemoteLedger | None = None,
    ) -> None:
        """workers: of which one at a time carries out what waits. is_fenced: operations are refused. remote:
        what has operations before the ledger has them.
        """
        self._ledger = ledger
        self._workers = workers
        self._observer = observer or LiveObserver()
        self._state = state
        self.written_documents = 0
        self.busy_seconds = 0.0  # that operations have taken so far, with the waits for the disk
        self._waiting: deque[_Waiting | _Change] = deque()
        self._changed = threading.Condition()
        self._working = False  # a worker carries out what waits, or is about to
        self._closed = False
        self._is_fenced = is_fenced
        self._remote = remote

    @property
    def state(self) -> LiveState:
        """The collection after the last operation that is on the disk."""
        return self._state

    def submit(self, operation: Operation, key: WriteKey | None = None, tokens: int = 0) -> Future[Written]:
        """Puts an operation behind those that wait. Its future raises what it or the disk raises.

        Under a key that is in use it is not carried out: the future has what was acknowledged then, or raises
        IdempotencyMismatchError. tokens: were encoded for it. Raises CollectionFencedError.
        """
        written: Future[Written] = Future()
        self._put(_Waiting(operation, key, tokens, written))
        return written

    def written_under(self, key: WriteKey) -> Written | None:
        """What was acknowledged under a key in the last day. Raises IdempotencyMismatchError."""
        stored = self._ledger.answer_of(key.key)
        return None if stored is None else Written.of(stored, key)

    def change(self, change: Callable[[LiveState], LiveState]) -> LiveState:
        """Carries out a change of where documents are, between two operations; returns the state after it."""
        changed: Future[LiveState] = Future()
        self._put(_Change(change, changed))
        return changed.result()

    def fence(self) -> LiveState:
        """Refuses operations from now on; returns the state after all that came before."""
        with self._changed:
            self._is_fenced = True
        return self.change(lambda state: state)

    def lift(self) -> None:
        """Takes operations again."""
        with self._changed:
            self._is_fenced = False

    def require_open(self) -> None:
        """Raises CollectionFencedError where operations are refused."""
        if self._is_fenced:
            raise fenced(self._state.settings.name)

    def close(self) -> None:
        """Carries out what waits, and takes nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not self._working)

    def _put(self, waiting: _Waiting | _Change) -> None:
        with self._changed:
            if self._closed:
                raise SearchIndexError(f"collection {self._state.settings.name!r} is closed for writing")
            if isinstance(waiting, _Waiting):
                self.require_open()
            self._waiting.append(waiting)
            if self._working:
                return
            self._working = True
        self._workers.submit(self._work)

    def _work(self) -> None:
        """Carries out one group, or one change; other collections may have their turn before the next."""
        group = self._next_group()
        if isinstance(group, _Change):
            self._apply(group)
        else:
            self._commit(group)
        del group
        with self._changed:
            if not self._waiting:
                self._working = False
                self._changed.notify_all()
                return
        self._workers.submit(self._work)

    def _next_group(self) -> list[_Waiting] | _Change:
        """A change that is next, or the operations before the next one."""
        with self._changed:
            group: list[_Waiting] = []
            while self._waiting and len(group) < GROUP:
                first = self._waiting[0]
                if isinstance(first, _Change):
                    if group:
                        break
                    self._waiting.popleft()
                    return first
                group.append(first)
                self._waiting.popleft()
            return group

    def _apply(self, waiting: _Change) -> None:
        try:
            self._state = waiting.change(self._state)
            waiting.changed.set_result(self._state)
        except Exception as error:  # noqa: BLE001 - the change's own failure, which its caller gets
            waiting.changed.set_exception(error)

    def _commit(self, group: Sequence[_Waiting]) -> None:
        """Forces operations to the disk: all of them appear at once, or fail together."""
        started = time.perf_counter()
        try:
            self._settle()
        except Exception as error:  # noqa: BLE001 - that of the remote ledger, which all callers get
            for waiting in group:
                waiting.written.set_exception(error)
            return
        state, accepted, following = self._carried_out(group)
        entries = [operation.entry for operation in accepted if operation.entry is not None]
        applied = time.perf_counter()
        try:
            if entries:
                first = self._state.position + 1
                if self._remote is not None:
                    self._remote.append(first, entries)
                with _also_here(self._remote):
                    last = self._ledger.append(entries, least_position=first)
                assert last == state.position  # noqa: S101 - this process alone writes the ledger
        except Exception as error:  # noqa: BLE001 - the disk's failure, which all callers get
            for operation in accepted:
                operation.written.set_exception(error)
        else:
            self._state = state
            self.written_documents += sum(operation.answer.documents for operation in accepted)
            for operation in accepted:
                operation.written.set_result(operation.answer)
        logged = time.perf_counter()
        self.busy_seconds += logged - started
        self._observer.wrote("apply", applied - started)
        self._observer.wrote("log", logged - applied)
        if following:
            self._commit(following)

    def _settle(self) -> None:
        """Has the state and the ledger take up what the remote ledger has after an append that failed."""
        entries = () if self._remote is None else self._remote.settle()
        if self._remote is not None and entries:
            first = self._state.position + 1
            self._ledger.append(entries, least_position=first)
            self._state = replay(self._state, enumerate(entries, first))
            self._remote.appended()

    def _carried_out(
        self, group: Sequence[_Waiting]
    ) -> tuple[LiveState, list[_Accepted], Sequence[_Waiting]]:
        """The state after operations, each of which sees those before it, what was accepted, and what follows
        later: a repeat of a key, which is answered as what came before it is.
        """
        state = self._state
        accepted: list[_Accepted] = []
        keys: set[str] = set()
        for number, waiting in enumerate(group):
            if waiting.key is not None and waiting.key.key in keys:
                return state, accepted, group[number:]
            try:
                former = None if waiting.key is None else self.written_under(waiting.key)
                if former is not None:
                    waiting.written.set_result(former)
                    continue
                state, operation = _accept(waiting, state)
            except Exception as error:  # noqa: BLE001 - the operation's own failure, which its caller gets
                waiting.written.set_exception(error)
                continue
            accepted.append(operation)
            if waiting.key is not None:
                keys.add(waiting.key.key)
        return state, accepted, ()


@contextmanager
def _also_here(remote: RemoteLedger | None) -> Iterator[None]:
    """Within it the ledger here gets what the remote one has just got. Raises WriteUnknownError where it does
    not: the write will be found once it has.
    """
    try:
        yield
    except SearchIndexError as error:
        if remote is None:
            raise
        raise WriteUnknownError(
            f"{error}; the write is in the remote ledger, and will be found once this disk has it, too"
        ) from error
    if remote is not None:
        remote.appended()


def _accept(waiting: _Waiting, state: LiveState) -> tuple[LiveState, _Accepted]:
    """The state after an operation; with a key it has an entry, also where it changes nothing."""
    position = state.position + 1
    applied = waiting.operation.apply(state, position)
    if applied.entry is None and waiting.key is not None:
        applied = unchanged(state, position)
    answer = Written(applied.state.position, applied.documents, waiting.tokens)
    entry = applied.entry
    if entry is not None and waiting.key is not None:
        entry = replace(entry, key=answer.stored_under(waiting.key))
    return applied.state, _Accepted(waiting.written, answer, entry)
