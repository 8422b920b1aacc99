"""One server writes a collection in an engine at a time: the one that the engine names.

Another one takes its place where nothing was noted for a while. It writes its name, waits, and looks whether
it is still there (Fischer's mutual exclusion), since not every engine compares before it writes. Who lost its
place in the middle of a write says so.
"""

from __future__ import annotations

import math
import time

from tercet.cluster.backends.catalog import EngineCatalog, WriteState
from tercet.index.errors import WriterReplacedError
from tercet.service.exceptions import BackendError

QUIET_SECONDS = 60.0  # without a note of a write, twice what one request may take: then another may write
TURN_SECONDS = 1.0  # for so long a server takes for true that it is the one that writes
SETTLE_SECONDS = 2.0  # in which what others did in that time arrives, claims and notes


class Turn:
    """Whether this server may write a collection. One thread uses it at a time; its methods wait for the
    engine, and raise BackendError.
    """

    def __init__(self, catalog: EngineCatalog, name: str, engine: str) -> None:
        """name: of the collection; engine: for messages."""
        self._catalog = catalog
        self._name = name
        self._engine = engine
        self._noted: WriteState | None = None
        self._noted_at = 0.0  # when that was first seen, of `time.monotonic()`
        self._held_at = -math.inf
        self._beat = 0

    def noted(self) -> WriteState:
        """What is noted of the last write. Raises CollectionNotFoundError."""
        state = self._catalog.state(self._name)
        if state != self._noted:
            self._noted, self._noted_at = state, time.monotonic()
        return state

    def take(self) -> bool:
        """Has this server write from now on, after a look at what is noted; whether another could before.
        Raises WriterReplacedError while another one writes.
        """
        if self._is_held():
            return False
        former, noted = self._catalog.writer(self._name), self._noted
        if former and time.monotonic() < self._noted_at + QUIET_SECONDS:
            raise self._refusal(former)
        self._catalog.claim(self._name, self._catalog.server)
        time.sleep(SETTLE_SECONDS)
        writer = self._catalog.writer(self._name)
        if writer == self._catalog.server and self.noted() != noted:  # the former one goes on
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
        self._catalog.note(self._name, WriteState(position, pending, self._beat))

    def release(self) -> None:
        """Lets another server write at once."""
        self._catalog.release(self._name)
        self._held_at = -math.inf

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
            f"collection {self._name!r} of {self._engine} is written by another server ({writer}), and "
            f"one at a time may; nothing was written: write there, or try again once that has ended, or this "
            f"server has seen no write for {QUIET_SECONDS:.0f} s"
        )
