"""What is known of the request at hand, for its span and its entry in the audit log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Fact = str | int | float | bool
Facts = dict[str, Fact]

_current: ContextVar[Facts | None] = ContextVar("facts", default=None)


@contextmanager
def gathering(facts: Facts) -> Iterator[None]:
    """What is noted inside, and in the tasks begun there, is added to these facts."""
    token = _current.set(facts)
    try:
        yield
    finally:
        _current.reset(token)


def note(**facts: Fact) -> None:
    """Adds facts to those of the request at hand, if there is one."""
    if (current := _current.get()) is not None:
        current.update(facts)
