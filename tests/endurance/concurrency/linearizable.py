"""Is a history of one document linearizable? Its operations must take effect in some order that respects
their times, in which each read sees what was written last: by the search of Wing and Gong 1993, with the
memory of Lowe 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Operation:
    """value: what was put, or seen by a read; None where the document is not there. ended: infinity for a
    write of which nobody knows whether it took effect; it may at any later time, or never.
    """

    kind: Literal["write", "read"]
    value: str | None
    begun: float
    ended: float

    @property
    def is_known(self) -> bool:
        """Whether it took effect for certain."""
        return self.ended != float("inf")


def is_linearizable(history: Sequence[Operation], first: str | None = None) -> bool:
    """first: the value before all operations."""
    seen = {operation.value for operation in history if operation.kind == "read"}
    # An unknown write that nobody saw can be left out of any order that has it.
    operations = sorted(
        (each for each in history if each.is_known or each.value in seen), key=lambda each: each.begun
    )
    required = sum(1 << number for number, each in enumerate(operations) if each.is_known)
    todo, known = [(0, first)], {(0, first)}
    while todo:
        done, value = todo.pop()
        if done & required == required:
            return True
        for number in _next(operations, done):
            operation = operations[number]
            if operation.kind == "read" and operation.value != value:
                continue
            after = (done | 1 << number, operation.value)
            if after not in known:
                known.add(after)
                todo.append(after)
    return False


def _next(operations: Sequence[Operation], done: int) -> list[int]:
    """Those that may take effect next: no other one that is not done ended before they began."""
    found, earliest = list[int](), float("inf")
    for number, operation in enumerate(operations):
        if operation.begun > earliest:
            break
        if not done >> number & 1:
            found.append(number)
            earliest = min(earliest, operation.ended)
    return found
