"""Who does the pieces of a work: this process, or others.

A piece and what comes of it are small records, which travel. Everything large lies on the object store. A
piece may be done more than once, so what counts of it is the record that was created there first
(`cluster/work/records.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Worker = Callable[[Any], Any]
"""Does one piece, and says what came of it."""


class Work(Protocol):
    """A kind of pieces; it travels to the processes that do them."""

    @property
    def encodes(self) -> bool:
        """Whether its pieces want what encoders run on."""
        ...

    def begin(self) -> Worker:
        """Opens what the pieces need, once in each process."""
        ...


class Executor(Protocol):
    """Has pieces of work done."""

    def run(self, work: Work, pieces: Sequence[Any]) -> Iterator[Any]:
        """What came of each piece, as they are done, in any order. Raises what a piece raises."""
        ...


@dataclass(frozen=True, slots=True)
class ThisProcess:
    """Does one piece after the other, here."""

    def run(self, work: Work, pieces: Sequence[Any]) -> Iterator[Any]:
        """What came of each piece, in order."""
        if pieces:
            yield from map(work.begin(), pieces)
