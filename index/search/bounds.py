"""How high the sum of each candidate may be, from as little reading of token vectors as it takes.

Where they are stored by a codebook, candidates are first compared by the centroids of their tokens. No score
is higher than the length of the query's vectors, and what the rest of the codes adds is a share of what a
centroid leaves to that. How large the share may be is seen on some of the best candidates and on some of all
others, and never taken for less than `LEAST_SHARE`, so that candidates which are alike do not make it small;
of few query tokens it is all, since nothing averages out. What lies below the last hit even with this share
is not read. Unlike the bounds of what is read, that is an estimate where the share is below 1:
benchmarks/token_codecs.py measures what it loses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.fusion import weighted_sum
from tercet.index.scoring import near_packed_maxsim
from tercet.index.search.choice import Choice
from tercet.index.search.exact_scores import Candidates, WindowScores
from tercet.index.search.late_interaction import FirstScores, TokenParts, first_scores
from tercet.index.search.query import CheckedQuery
from tercet.index.search.threads import segment_threads
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float64, Int64

ROUNDING = 1e-15  # of a weighted sum in float64, relative to the largest
SEEN = 32  # of the best candidates, and
SPREAD = 8  # of all others, that show how far the first look may be off
ENOUGH = 20  # of these that differ
ALIKE = 1000  # steps of the highest score, within one of which scores do not differ
DEVIATIONS = 4.0
LEAST_SHARE = 0.5
FEW_TOKENS = 2


Bounds = tuple[Float64, float]
"""What the exact sum of each of K candidates is at most, float64[K], and that of the last hit at least."""


class QuickScores:
    """The late interaction of K candidates by quick sums: each is read once, whatever weights then count it.

    late: float64[K], and errors: float64[K], how far each may be from the exact one; 0 where is_read: bool[K]
    is not.
    """

    def __init__(self, segments: Sequence[Segment], candidates: Candidates, query: CheckedQuery) -> None:
        self.segments = segments
        self.candidates = candidates
        self.query = query
        self.late = np.zeros(len(candidates))
        self.errors = np.zeros(len(candidates))
        self.is_read = np.zeros(len(candidates), np.bool_)


def bounds_of(
    quick: QuickScores,
    candidates: Candidates,
    weights: Weights,
    sides: int,
    choice: Choice,
    *,
    estimates: bool = True,
) -> Bounds:
    """What the exact sum of each candidate is at most, float64[K], and that of the last hit at least, if so
    many are hits by quick sums as are wanted. Of a candidate that is not read it is -infinity.

    quick: of the candidates, whatever else they have been compared for; estimates: whether the share may be
    below 1. It is seen on all candidates of a search, so a shard, which has but some of them, does not
    estimate it.
    """
    if len(candidates) <= choice.wanted:
        return np.full(len(candidates), np.inf), choice.floor
    sums = _Sums(quick, candidates, weights, sides)
    everything = np.arange(len(candidates))
    seen = max(SEEN, 2 * choice.wanted)
    first = None
    # With a weight below zero the worst would have to be guessed.
    if estimates and weights.colbert > 0 and len(candidates) > 2 * seen:
        first = first_scores(quick.segments, quick.query, candidates.segments, candidates.rows)
    if first is None:
        sums.read(everything)
    else:
        guessed = sums.with_late(everything, first.scores)
        order = np.argsort(-guessed, kind="stable")
        shown = np.concatenate([order[:SEEN], _spread(order[SEEN:])])  # the same, whatever is wanted
        sums.read(np.union1d(order[:seen], shown))
        share = _share_of(first, quick.late, shown)
        unread = np.flatnonzero(~sums.is_read)
        near = guessed[unread] + weights.colbert * share * first.left[unread] >= sums.least(choice)
        sums.read(unread[near])
        if share < 1 and (first.shares(quick.late, np.flatnonzero(sums.is_read)) > share).any():
            sums.read(np.flatnonzero(~sums.is_read))  # it was taken for less than it is
    return sums.high, sums.least(choice)


def _spread(indices: Int64) -> Int64:
    """`SPREAD` of them, evenly from first to last."""
    return indices[np.linspace(0, len(indices) - 1, SPREAD).astype(np.int64)]


def _share_of(first: FirstScores, late: Float64, shown: Int64) -> float:
    """Which share of what centroids leave the rest of the codes adds at most, from that of some candidates.
    1 if these are too much alike, or the query's tokens too few for anything to average out.
    """
    pairs = np.rint(np.array([first.scores[shown], late[shown]]) * (ALIKE / first.highest))
    _, different = np.unique(pairs, axis=1, return_index=True)
    if len(different) < ENOUGH or first.query_tokens <= FEW_TOKENS:
        return 1.0
    seen = first.shares(late, shown[different])
    return min(1.0, max(LEAST_SHARE, float(seen.mean() + DEVIATIONS * seen.std())))


class _Sums:
    """Between what the sums of K candidates lie, of those that were read."""

    def __init__(self, quick: QuickScores, candidates: Candidates, weights: Weights, sides: int) -> None:
        self._quick = quick
        self._candidates = candidates
        self._weights = weights
        self._sides = sides
        self.low = np.full(len(candidates), -np.inf)
        self.high = np.full(len(candidates), -np.inf)
        self.is_read = np.zeros(len(candidates), np.bool_)

    def with_late(self, indices: Int64, late: Float64) -> Float64:
        """The sums of some candidates with this late interaction, float64[n]."""
        return weighted_sum(self._candidates.take(indices).components(late, self._sides), self._weights)

    def read(self, indices: Int64) -> None:
        """Scores candidates by their token vectors, if these count, with how far each may be off."""
        if len(indices) == 0:
            return
        quick, tokens = self._quick, self._quick.query.colbert
        fresh = indices[~quick.is_read[indices]]
        if self._weights.colbert != 0 and tokens is not None and len(fresh):
            rows = quick.candidates.segments[fresh], quick.candidates.rows[fresh]
            parts = TokenParts.of(quick.segments, tokens, *rows, near_packed_maxsim)
            done = zip(*segment_threads().run(parts.parts, parts.costs), strict=True)
            quick.late[fresh], quick.errors[fresh] = (
                WindowScores(np.concatenate(columns), parts.offsets).best() for columns in done
            )
            quick.is_read[fresh] = True
        sums = self.with_late(indices, quick.late[indices])
        off = abs(self._weights.colbert) * quick.errors[indices]
        off[off > 0] += ROUNDING * float(np.abs(sums).max(initial=0))
        self.low[indices], self.high[indices] = sums - off, sums + off
        self.is_read[indices] = True

    def least(self, choice: Choice) -> float:
        """What the last hit's sum is at least, if so many of those read are hits as are wanted."""
        hits = choice.surely_of(np.argsort(-self.low, kind="stable"), self.high)
        least = float(self.low[hits[-1]]) if len(hits) == choice.top_k else choice.floor
        return max(least, choice.floor)
