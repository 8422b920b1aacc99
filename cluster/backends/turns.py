"""One server writes a collection in an engine at a time: the one that the engine names.

Another one takes its place where nothing was noted for a while. It writes its name, waits, and looks whether
it is still there (Fischer's mutual exclusion), since not every engine compares before it writes. Who lost its
place in the middle of a write says so.
"""

from __future__ import annotations

import math
import time

from tercet.cluster.backends.catalog import EngineCatalog, WriteState
from tercet.cluster.backends.engine import Engine
from tercet.index.catalog.lineage import Lineage
from tercet.index.errors import WriterReplacedError
from tercet.index.live.records import WriteKey, Written
from tercet.service.exceptions import BackendError

QUIET_SECONDS = 60.0  # at least, without a note of a write: then another may write
REQUESTS = 2  # that may be under way since what was noted last: the note, and what it announces
TURN_SECONDS = 1.0  # for so long a server takes for true that it is the one that writes
SETTLE_SECONDS = 2.0  # in which what others did in that time arrives, claims and notes


class Turn:
    """Whether this server may write a collection. One thread uses it at a time; its methods wait for the
    engine, and raise BackendError.
    """

    def __init__(self, engine: Engine, catalog: EngineCatalog, name: str) -> None:
        """name: of the collection."""
        self._engine = engine
        self._catalog = catalog
        self._name = name
        self._lineage: Lineage | None = None
        self._noted = WriteState(0, pending=False)  # of that lineage
        self._noted_at = 0.0  # when that was first seen, of `time.monotonic()`
        self._held_at = -math.inf
        self._beat = 0

    @property
    def quiet_seconds(self) -> float:
        """For so long without a note a server writes no more, whatever it waits for."""
        return max(QUIET_SECONDS, REQUESTS * self._engine.timeout_seconds)

    def noted(self, lineage: Lineage | None) -> WriteState:
        """What is noted of the last write to the collection of a lineage. Raises CollectionNotFoundError."""
        state = self._catalog.state(self._name)
        if lineage != self._lineage:
            self._lineage = lineage
            self._note(state)
        elif state.position >= self._noted.position and state != self._noted:  # else a note arrived late
            self._note(state)
        return self._noted

    def take(self) -> bool:
        """Has this server write from now on, after a look at what is noted; whether another could before.
        Raises WriterReplacedError while another one writes.
        """
        if self._is_held():
            return False
        former, noted = self._catalog.writer(self._name), self._noted
        if former and time.monotonic() < self._noted_at + self.quiet_seconds:
            raise self._refusal(former)
        self._catalog.claim(self._name, self._catalog.server)
        time.sleep(SETTLE_SECONDS)
        writer = self._catalog.writer(self._name)
        if writer == self._catalog.server and self.noted(self._lineage) != noted:  # the former one goes on
            self._catalog.claim(self._name, former)
        if not self._is_held():
            raise self._refusal(self._catalog.writer(self._name))
        return True

    def require(self) -> None:
        """Raises BackendError where another server took the place of this one."""
        if not self._is_held():
            raise BackendError(f"collection {self._name!r} is written by another server from now on")

    def go_on(self, position: int, *, pending: bool = True) -> None:
        """This server goes on with a write, of this position where it is pending: whoever else may write sees
        that. Raises as `require`.
        """
        self.require()
        self._beat += 1
        self._note(WriteState(position, pending, self._beat))
        self._catalog.note(self._name, self._noted)

    def finish(self, written: Written, key: WriteKey | None) -> None:
        """A write was carried out, under a key if any. Raises as `require`."""
        self.require()
        self._catalog.finish(self._name, written, key)
        self._note(WriteState(written.position, pending=False))

    def release(self) -> None:
        """Lets another server write at once."""
        self._catalog.release(self._name)
        self._held_at = -math.inf

    def _note(self, state: WriteState) -> None:
        self._noted, self._noted_at = state, time.monotonic()

    def _is_held(self) -> bool:
        """Whether this server is the one that writes, as the engine said a moment ago."""
        began = time.monotonic()
        if began < self._held_at + TURN_SECONDS:
            return True
        is_held = self._catalog.writer(self._name) == self._catalog.server
        if is_held:
            self._held_at = began
        return is_held

    def _refusal(self, writer: str) -> WriterReplacedError:
        return WriterReplacedError(
            f"collection {self._name!r} of {self._engine.name} is written by another server ({writer}), and "
            f"one at a time may; nothing was written: write there, or try again once that has ended, or this "
            f"server has seen no write for {self.quiet_seconds:.0f} s"
        )
