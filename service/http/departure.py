"""Whether the client of a request has left, as the connection tells whoever works for it."""

from __future__ import annotations

from collections.abc import Callable

STATE = "departure"  # where a request's scope has it, among its `state`


class Departure:
    """Of one request; what is told of it once, when its connection ends before the answer is whole."""

    __slots__ = ("_tell",)

    def __init__(self) -> None:
        self._tell: Callable[[], None] | None = None

    def expect(self, tell: Callable[[], None] | None) -> None:
        """What to call when the client leaves; None: nothing any more."""
        self._tell = tell

    def happened(self) -> None:
        """Tells it."""
        if self._tell is not None:
            self._tell()
