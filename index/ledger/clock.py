"""The time by which a ledger keeps answers for a day: one that never steps back."""

from __future__ import annotations

import time


class LedgerClock:
    """Seconds since 1970 as the system had them when the ledger was opened, and what has passed since.

    Somebody may set the system's clock while answers are kept. Then an answer must not be out of date at one
    look and in use at the next, nor all of them be forgotten at once.
    """

    def __init__(self, newest: float | None) -> None:
        """newest: when the last answer was stored; no earlier does the clock begin. None without one."""
        self._began = time.time() if newest is None else max(time.time(), newest)
        self._opened = time.monotonic()

    def now(self) -> float:
        """Seconds since 1970. Any thread may ask."""
        return self._began + (time.monotonic() - self._opened)
