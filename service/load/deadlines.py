"""How long an answer is of use."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment after which work that has not begun is dropped, in seconds of the monotonic clock."""

    moment: float = math.inf

    @property
    def remaining_seconds(self) -> float:
        """Time left; 0 once it has passed."""
        return max(0.0, self.moment - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether it is too late."""
        return time.monotonic() >= self.moment


NO_DEADLINE = Deadline()


def within(seconds: float) -> Deadline:
    """The deadline so long from now."""
    return Deadline(time.monotonic() + seconds)
