"""How high the sum of each candidate may be, from as little reading of token vectors as it takes.

Where they are stored by a codebook, candidates are first compared by the centroids of their tokens. How much
the rest of the codes adds to that differs little between documents; it is seen on the best of them, and what
lies farther below the last hit than it is likely to differ is not read. Unlike the bounds of what is read,
that is an estimate: benchmarks/token_codecs.py measures what it loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from index.candidates import Weights
from index.fusion import weighted_sum
from index.search.choice import Choice
from index.search.late_interaction import first_scores, near_scores
from index.search.query import CheckedQuery
from index.search.retrieval import Candidates
from index.segments.segment import Segment
from models.representations import Float64, Int64

ROUNDING = 1e-15  # of a weighted sum in float64, relative to the largest
SEEN = 32  # candidates that show how far the first look may be off
DEVIATIONS = 4.0


def bounds_of(
    segments: Sequence[Segment],
    found: Candidates,
    query: CheckedQuery,
    weights: Weights,
    sides: int,
    choice: Choice,
) -> tuple[Float64, float]:
    """What the exact sum of each candidate is at most, float64[K], and that of the last hit at least, if so
    many are hits by quick sums as are wanted. Of a candidate that is not read it is -infinity.
    """
    if len(found) <= choice.wanted:
        return np.full(len(found), np.inf), choice.floor
    sums = _Sums(segments, found, query, weights, sides)
    everything = np.arange(len(found))
    seen = max(SEEN, 2 * choice.wanted)
    first = None
    if weights.colbert > 0 and len(found) > 2 * seen:  # below zero the worst would have to be guessed
        first = first_scores(segments, found, query)
    if first is None:
        sums.read(everything)
    else:
        guessed = sums.with_late(everything, first)
        best = np.sort(np.argpartition(-guessed, seen)[:seen])
        sums.read(best)
        added = sums.late[best] - first[best]
        margin = weights.colbert * (added.mean() + DEVIATIONS * added.std())
        near = guessed + margin >= sums.least(choice)
        near[best] = False
        sums.read(np.flatnonzero(near))
    return sums.high, sums.least(choice)


class _Sums:
    """Between what the sums of K candidates lie, of those that were read."""

    def __init__(
        self,
        segments: Sequence[Segment],
        found: Candidates,
        query: CheckedQuery,
        weights: Weights,
        sides: int,
    ) -> None:
        self._segments = segments
        self._found = found
        self._query = query
        self._weights = weights
        self._sides = sides
        self.late = np.zeros(len(found))
        self.low = np.full(len(found), -np.inf)
        self.high = np.full(len(found), -np.inf)

    def with_late(self, places: Int64, late: Float64) -> Float64:
        """The sums of some candidates with this late interaction, float64[n]."""
        return weighted_sum(self._found.take(places).components(late, self._sides), self._weights)

    def read(self, places: Int64) -> None:
        """Scores candidates by their token vectors, if these count."""
        if len(places) == 0:
            return
        late = errors = np.zeros(len(places))
        if self._weights.colbert != 0:
            late, errors = near_scores(self._segments, self._found.take(places), self._query)
        sums = self.with_late(places, late)
        off = abs(self._weights.colbert) * errors
        off[off > 0] += ROUNDING * float(np.abs(sums).max(initial=0))
        self.late[places], self.low[places], self.high[places] = late, sums - off, sums + off

    def least(self, choice: Choice) -> float:
        """What the last hit's sum is at least, if so many of those read are hits as are wanted."""
        hits = choice.surely_of(np.argsort(-self.low, kind="stable"), self.high)
        least = float(self.low[hits[-1]]) if len(hits) == choice.top_k else choice.floor
        return max(least, choice.floor)
