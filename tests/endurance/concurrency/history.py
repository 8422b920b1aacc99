"""Is each read explained by the writes? Positions order them, so that each state of the collection is known.

A read must have seen one state as a whole: not an earlier one than the last write that was acknowledged
before it began, not a later one than the last write that had begun when it ended, and none before a state
that the same reader has seen.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Value = tuple[str, str]
"""What a document holds: the tags of the writes of its text and of its metadata."""

KEPT = 4096  # last writes whose times are kept
TOLD = 20


@dataclass(slots=True, eq=False)
class Write:
    """A write under way or acknowledged. Times in seconds; counted: documents, as the answer said."""

    kind: Literal["put", "delete", "patch"]
    ids: tuple[str, ...]
    tag: str
    begun: float
    ended: float = 0.0
    position: int = 0
    counted: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """What a reader saw: a value for each document, None for one that was not there."""

    reader: int
    begun: float
    ended: float
    values: Mapping[str, Value | None]


@dataclass(slots=True)
class History:
    """Writes and reads of many threads; `check` is called by one.

    applied: the position of an empty collection to begin with, then that of the last write in `state`.
    """

    violations: list[str] = field(default_factory=list)
    checked: int = 0
    applied: int = 0
    state: dict[str, Value] = field(default_factory=dict)
    widest: int = 0
    """The most states that a read might have seen."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _open: dict[int, Write] = field(default_factory=dict)
    _ended: dict[int, Write] = field(default_factory=dict)
    _reads: deque[Read] = field(default_factory=deque)
    _recent: deque[Write] = field(default_factory=lambda: deque(maxlen=KEPT))
    _of: dict[str, list[tuple[int, Value | None]]] = field(
        default_factory=lambda: defaultdict(lambda: [(0, None)])
    )
    _floors: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def begin(self, write: Write) -> None:
        """Before a write."""
        with self._lock:
            self._open[id(write)] = write

    def end(self, write: Write) -> None:
        """After its acknowledgement; position 0 for one that was refused, or changed nothing."""
        with self._lock:
            if write.position:
                self._ended[write.position] = write
            del self._open[id(write)]

    def saw(self, read: Read) -> None:
        """After a read."""
        with self._lock:
            self._reads.append(read)

    def check(self) -> None:
        """Checks all reads that ended before any write began whose place in the order is not known yet."""
        with self._lock:
            reads, self._reads = self._reads, deque()
            ended = dict(self._ended)
            open_since = min((write.begun for write in self._open.values()), default=float("inf"))
        while (write := ended.pop(self.applied + 1, None)) is not None:
            self._apply(write)
        with self._lock:
            self._ended = {place: write for place, write in self._ended.items() if place > self.applied}
        known_until = min([open_since, *(write.begun for write in ended.values())])
        later = deque[Read]()
        for read in reads:
            if read.ended < known_until:
                self._explain(read)
            else:
                later.append(read)
        with self._lock:
            self._reads.extendleft(reversed(later))
        self._forget()

    def _apply(self, write: Write) -> None:
        there = sum(id in self.state for id in write.ids)
        if write.counted != (len(write.ids) if write.kind == "put" else there):
            self._tell(f"{write} counts {write.counted} documents")
        self.applied = write.position
        for name in write.ids:
            value: Value | None = (write.tag, write.tag)
            if write.kind == "delete":
                value = None
            elif write.kind == "patch":
                value = (self.state[name][0], write.tag)
            self._of[name].append((write.position, value))
            if value is None:
                self.state.pop(name, None)
            else:
                self.state[name] = value
        self._recent.append(write)

    def _explain(self, read: Read) -> None:
        self.checked += 1
        least = max([self._floors[read.reader], *(w.position for w in self._recent if w.ended < read.begun)])
        most = max([least, *(write.position for write in self._recent if write.begun < read.ended)])
        self.widest = max(self.widest, most - least + 1)
        states = np.arange(least, most + 1)
        possible = np.ones(len(states), np.bool_)
        for name, value in read.values.items():
            changes = self._of[name]
            at = np.searchsorted([position for position, _ in changes], states, "right") - 1
            possible &= np.array([changes[place][1] == value for place in at.tolist()])
            if not possible.any():
                self._tell(
                    f"reader {read.reader} saw {name} as {value} in none of the states {least} to {most}, "
                    f"where it was {changes[-3:]}"
                )
                return
        self._floors[read.reader] = int(states[possible.argmax()])

    def _forget(self) -> None:
        """Changes before the earliest state that a reader may still see."""
        floor = min(self._floors.values(), default=0)
        for changes in self._of.values():
            while len(changes) > 1 and changes[1][0] <= floor:
                del changes[0]

    def _tell(self, violation: str) -> None:
        if len(self.violations) < TOLD:
            self.violations.append(violation)
