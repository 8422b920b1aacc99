"""Whether the batches of an encoder succeed: what its batcher notes, and `/ready` reads."""

from __future__ import annotations

import time

FAILURES = 3  # in a row, from which on the encoder counts as failing


class EncoderHealth:
    """The batches' record: how many failed one after the other, and how long one has been in work."""

    def __init__(self, stall_seconds: float) -> None:
        """stall_seconds: how long a batch may be in work."""
        self._stall_seconds = stall_seconds
        self._failures = 0
        self._begun: float | None = None

    def begun(self) -> None:
        """A batch goes to the encoder."""
        self._begun = time.monotonic()

    def ended(self, *, succeeded: bool) -> None:
        """The encoder has answered, or failed."""
        self._begun = None
        self._failures = 0 if succeeded else self._failures + 1

    @property
    def failing(self) -> bool:
        """Whether batch after batch failed; only the next one tells whether that is over."""
        return self._failures >= FAILURES

    @property
    def problem(self) -> str | None:
        """Why the encoder cannot be relied on, or None."""
        if self._begun is not None and time.monotonic() - self._begun > self._stall_seconds:
            return (
                f"a batch has been in work for more than {self._stall_seconds:g} s (setting stall_seconds); "
                "restart the server if that goes on"
            )
        if self.failing:
            return f"the last {self._failures} batches failed; the server's log says why"
        return None
