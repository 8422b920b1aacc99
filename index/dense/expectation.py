"""How many rows to ask an approximate search for, where only some of them count."""

from __future__ import annotations

import math

DEVIATIONS = 3.0


def likely_at_most(mean: float) -> int:
    """What a count of independent events of this mean exceeds about once in 700 times."""
    return math.ceil(mean + DEVIATIONS * math.sqrt(mean))
