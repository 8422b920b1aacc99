"""What a router goes on with in a moment: snapshots as it saw them, and searches that it has begun.

A snapshot has a state, a text that no snapshot of another content has, in any process, so that what a router
knows of it stays true. Servers that follow what another one published have the same. All is let go of after a
while, and the oldest where there is too much of it.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from tercet.index.search.shard_search import ShardSearch
from tercet.index.snapshot import Snapshot
from tercet.service.exceptions import ShardStateGoneError

KEPT_SECONDS = 60.0
CONTENT_DIGITS = 32  # of a state that is named by its content
MOST_SNAPSHOTS = 64
MOST_SEARCHES = 1024
MOST_BYTES = 64 << 20  # of searches

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True)
class BegunSearch:
    """A search of a collection that has proposed candidates."""

    collection: str
    search: ShardSearch


class Pins:
    """Those of one server. Safe to use from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds."""
        self._process = secrets.token_hex(6)
        self._numbers = count()
        self._lock = threading.Lock()
        self._states: WeakKeyDictionary[Snapshot, str] = WeakKeyDictionary()
        self._snapshots = _Kept[Snapshot](clock, MOST_SNAPSHOTS)
        self._searches = _Kept[BegunSearch](clock, MOST_SEARCHES)

    def pin(self, snapshot: Snapshot) -> str:
        """The state of a snapshot, which from now on can be had by it for a while."""
        with self._lock:
            state = self._states.get(snapshot)
        if state is None:
            content = snapshot.content()
            state = f"{self._process}-{next(self._numbers)}" if content is None else content[:CONTENT_DIGITS]
        with self._lock:
            state = self._states.setdefault(snapshot, state)
            self._snapshots.keep(state, snapshot)
            return state

    def snapshot(self, state: str) -> Snapshot:
        """That of a state. Raises ShardStateGoneError."""
        with self._lock:
            return self._snapshots.get(state)

    def begin(self, search: BegunSearch) -> str:
        """A name for a search that goes on."""
        with self._lock:
            name = f"{self._process}-{next(self._numbers)}"
            self._searches.keep(name, search, search.search.size_bytes)
            return name

    def search(self, name: str, collection: str) -> ShardSearch:
        """The search of a name, in this collection. Raises ShardStateGoneError."""
        with self._lock:
            entry = self._searches.get(name)
            if entry.collection != collection:
                raise _gone(name)
            return entry.search


def is_of_content(state: str) -> bool:
    """Whether a state is named by what its snapshot holds, as on every server that has the same."""
    return "-" not in state


class _Kept(Generic[Kept]):
    """So many of one kind, by name, the oldest first."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[float, int, Kept]] = OrderedDict()

    def keep(self, name: str, kept: Kept, size_bytes: int = 0) -> None:
        self.drop(name)
        now = self._clock()
        self._entries[name] = now + KEPT_SECONDS, size_bytes, kept
        self._bytes += size_bytes
        while True:
            oldest = next(iter(self._entries))
            over = len(self._entries) > self._most or (self._bytes > MOST_BYTES and oldest != name)
            if not over and self._entries[oldest][0] > now:
                return
            self.drop(oldest)

    def get(self, name: str) -> Kept:
        entry = self._entries.get(name)
        if entry is None or entry[0] <= self._clock():
            raise _gone(name)
        return entry[2]

    def drop(self, name: str) -> None:
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._bytes -= entry[1]


def _gone(name: str) -> ShardStateGoneError:
    return ShardStateGoneError(f"what was begun as {name[:40]!r} is not kept any more; begin again")
