"""How fast work of one kind goes, as measured."""

from __future__ import annotations

import math

MEMORY_SECONDS = 2.0  # of work: what is measured now counts e times as much as what came so long before
GUESS_SECONDS = 0.01  # so little measured work outweighs a first guess


class Pace:
    """Units of work in a second, exponentially weighted by the time that was worked.

    A ratio of sums rather than a mean of ratios: a batch of one short text, which costs more for each token,
    says little beside a full one.
    """

    def __init__(self, units_per_second: float) -> None:
        """units_per_second: a first guess."""
        self._seconds = GUESS_SECONDS
        self._units = units_per_second * GUESS_SECONDS

    def observe(self, units: float, seconds: float) -> None:
        """Counts work that took this long."""
        kept = math.exp(-seconds / MEMORY_SECONDS)
        self._units = kept * self._units + units
        self._seconds = kept * self._seconds + seconds

    def units(self, seconds: float) -> float:
        """How much is done in this time."""
        return seconds * self._units / self._seconds

    def seconds(self, units: float) -> float:
        """How long so much work takes."""
        return units * self._seconds / self._units
