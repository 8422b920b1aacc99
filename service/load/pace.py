"""How fast work of one kind goes, as measured."""

from __future__ import annotations

import math
import threading

MEMORY_SECONDS = 2.0  # of work: what is measured now counts e times as much as what came so long before
GUESS_SECONDS = 0.01  # so little measured work outweighs a first guess


class Pace:
    """Units of work in a second, exponentially weighted by the time that was worked.

    A ratio of sums rather than a mean of ratios: a batch of one short text, which costs more for each token,
    says little beside a full one. Safe to use from several threads.
    """

    def __init__(self, units_per_second: float) -> None:
        """units_per_second: a first guess."""
        self._lock = threading.Lock()
        self._done = units_per_second * GUESS_SECONDS, GUESS_SECONDS  # units and seconds, of one moment

    def observe(self, units: float, seconds: float) -> None:
        """Counts work that took this long."""
        kept = math.exp(-seconds / MEMORY_SECONDS)
        with self._lock:
            former_units, former_seconds = self._done
            self._done = kept * former_units + units, kept * former_seconds + seconds

    def units(self, seconds: float) -> float:
        """How much is done in this time."""
        done_units, done_seconds = self._done
        return seconds * done_units / done_seconds

    def seconds(self, units: float) -> float:
        """How long so much work takes."""
        done_units, done_seconds = self._done
        return units * done_seconds / done_units
