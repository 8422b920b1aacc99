"""A relevance between 0 and 1, as other services' clients expect of a re-ranker.

relevance = 1 / (1 + e^(-STEEPNESS (s - MIDDLE))), where s is the three-way sum of `/rerank`. It grows with s,
so the order is the same.
"""

from __future__ import annotations

import math

MIDDLE = 1.0  # most sums of documents that answer lie above, most others below; see docs/compatibility.md
STEEPNESS = 4.0


def relevance(score: float) -> float:
    """The relevance of a three-way sum, above 0 and below 1."""
    return 0.5 + 0.5 * math.tanh(0.5 * STEEPNESS * (score - MIDDLE))
