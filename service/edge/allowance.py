"""What a client may take in a second."""

from __future__ import annotations

import math
import time


class Allowance:
    """So much a second, of which at most that of one second is saved up.

    What is taken may once exceed what is left, and is paid back before more is given.
    """

    __slots__ = ("_left", "_looked", "per_second")

    def __init__(self, per_second: float | None) -> None:
        self.per_second = per_second
        self._left = math.inf if per_second is None else max(1.0, per_second)
        self._looked = time.monotonic()

    def wait_seconds(self) -> float:
        """How long until something is left."""
        if self.per_second is None:
            return 0.0
        now = time.monotonic()
        saved = self._left + (now - self._looked) * self.per_second
        self._left, self._looked = min(max(1.0, self.per_second), saved), now
        return max(0.0, (1.0 - self._left) / self.per_second)

    def take(self, amount: float) -> None:
        """Takes it."""
        self._left -= amount

    def owe(self, most_seconds: float) -> float:
        """Takes one, in advance where none is left; gives the seconds until it would have been there.

        No more is taken in advance than what most_seconds bring.
        """
        if self.per_second is None:
            return 0.0
        self.wait_seconds()
        self._left = max(self._left - 1, -most_seconds * self.per_second)
        return max(0.0, -self._left / self.per_second)
