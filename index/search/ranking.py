"""Which candidates are hits: their order is that of exact sums, of which most need not be computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import SIDES, as_weighted, best, reciprocal_rank_fusion, relative_sum
from tercet.index.search.bounds import Bounds
from tercet.index.search.choice import Choice
from tercet.index.search.exact_scores import Candidates, WindowScores
from tercet.index.search.late_interaction import late_scores
from tercet.index.search.query import CheckedQuery
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float64, Int64


@dataclass(frozen=True, slots=True)
class Ranked:
    """K hits, best first. candidates: them; components: float64[K, S], exact scores; sums: float64[K],
    weighted; late: of their windows.
    """

    candidates: Candidates
    components: Float64
    sums: Float64
    late: WindowScores


def rank(
    segments: Sequence[Segment],
    candidates: Candidates,
    query: CheckedQuery,
    weights: Weights,
    sides: int,
    choice: Choice,
    bounds: Bounds,
) -> Ranked:
    """The hits among candidates by their exact weighted sums of so many sides, then by id.

    A document of which no side with a weight says anything, so that all its scores are 0, is none.
    What can be no hit by its quick score is not scored exactly; unless that leaves too few, since the value
    of a group may turn out to be that of a better hit, too. bounds: what `bounds_of` gives for the same.
    """
    highest, least = bounds
    while True:
        near = np.flatnonzero(~(highest < least))  # also what has no bound
        some, late = candidates.take(near), None
        if weights.colbert != 0:
            late = late_scores(segments, query, some.segments, some.rows)
        components = some.components(np.zeros(len(near)) if late is None else late.best(), sides)
        matching = _matching(components, weights)
        if len(matching) < len(near):
            near, components = near[matching], components[matching]
            late = None if late is None else late.take(matching)
        exact = np.full(len(candidates), -np.inf)
        sums = relative_sum(components, weights)
        exact[near] = as_weighted(sums, weights, sides)
        order = near[best(sums, choice.depth, partial(_ids, choice, near))]
        hits = choice.of(order[exact[order] >= least], exact)  # all that lie so high are among them
        if len(hits) == choice.top_k or least == choice.floor:
            break
        # Now also what was not read, which nothing is known of.
        least, highest = choice.floor, np.where(np.isneginf(highest), np.inf, highest)
    chosen = candidates.take(hits)
    if late is None:  # which counts nothing, but is told
        late = late_scores(segments, query, chosen.segments, chosen.rows)
    else:
        late = late.take(np.searchsorted(near, hits))
    return Ranked(chosen, chosen.components(late.best(), sides), exact[hits], late)


def rank_reciprocally(
    segments: Sequence[Segment],
    candidates: Candidates,
    query: CheckedQuery,
    weights: Weights,
    sides: int,
    choice: Choice,
) -> Ranked:
    """The hits among candidates by reciprocal rank fusion of so many sides, then by id.

    A rank tells of all candidates, so each has its exact scores. What is no hit of `rank` is none here.
    """
    late, components = None, candidates.components(np.zeros(len(candidates)), sides)
    if weights.colbert != 0:
        late = late_scores(segments, query, candidates.segments, candidates.rows)
        components = candidates.components(late.best(), sides)
    hits, sums = chosen_reciprocally(components, weights, choice)
    chosen = candidates.take(hits)
    late = late_scores(segments, query, chosen.segments, chosen.rows) if late is None else late.take(hits)
    return Ranked(chosen, chosen.components(late.best(), sides), sums[hits], late)


def chosen_reciprocally(components: Float64, weights: Weights, choice: Choice) -> tuple[Int64, Float64]:
    """The hits among K candidates with exact scores float64[K, S], best first, and the sums float64[K] of all
    by reciprocal ranks; -infinity for what is none.
    """
    sums = np.full(len(components), -np.inf)
    matching = _matching(components, weights)
    sums[matching] = reciprocal_rank_fusion(components, weights)[matching]
    return _chosen(sums, sums, choice)


def chosen(components: Float64, weights: Weights, choice: Choice) -> tuple[Int64, Float64]:
    """The hits among K candidates by weighted sums, as `rank` chooses where all are scored exactly."""
    sums, exact = np.full(len(components), -np.inf), np.full(len(components), -np.inf)
    matching = _matching(components, weights)
    sums[matching] = relative_sum(components[matching], weights)
    exact[matching] = as_weighted(sums[matching], weights, components.shape[1])
    return _chosen(sums, exact, choice)


def _chosen(sums: Float64, exact: Float64, choice: Choice) -> tuple[Int64, Float64]:
    """The hits by sums float64[K] that order them, and what these stand for."""
    order = best(sums, choice.depth, choice.ids_of)
    ranked = exact[order]
    return choice.of(order[(ranked > -np.inf) & (ranked >= choice.floor)], exact), exact


def _matching(components: Float64, weights: Weights) -> Int64:
    """Numbers of candidates of which a side with a weight says something; a boost says nothing of a query."""
    scores = components[:, :SIDES]
    return np.flatnonzero((scores[:, weights.array(scores.shape[1]) != 0] != 0).any(axis=1))


def _ids(choice: Choice, near: Int64, indices: Int64) -> PackedBytes:
    return choice.ids_of(near[indices])
