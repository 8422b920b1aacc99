"""From a search's candidates to its hits, and to the leaders that tell how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tercet.index.candidates import Hit
from tercet.index.documents.metadata import FieldType
from tercet.index.fusion import SIDES
from tercet.index.scoring import DECIMALS
from tercet.index.search.boosts import boosts_at
from tercet.index.search.bounds import QuickScores, bounds_of
from tercet.index.search.choice import Choice
from tercet.index.search.exact_scores import Candidates
from tercet.index.search.hits import hits_of
from tercet.index.search.query import CheckedQuery
from tercet.index.search.ranking import rank, rank_reciprocally
from tercet.index.search.snapshot_query import FIRST_PAGE, LEADERS, SnapshotQuery
from tercet.index.segments.segment import Segment
from tercet.models.representations import OUTPUTS, Float64


def ordered(
    segments: Sequence[Segment],
    candidates: Candidates,
    query: CheckedQuery,
    request: SnapshotQuery,
    sides: int,
    fields: Mapping[str, FieldType],
    collections: Sequence[str] | None = None,
) -> tuple[list[Hit], Float64 | None]:
    """The hits of a request among candidates; and the scores float64[n, 3] of those that lead by the weights
    `request.leading`, None without these.

    query: the request's, as the collection reads it; sides: how many a document has a score of; fields: those
    declared; collections: of the segments, where they are of several.
    """
    weights, leading = request.weights, request.leading
    quick, leaders = QuickScores(segments, candidates, query), None
    if leading is not None:
        choice = Choice.among(segments, candidates, LEADERS, FIRST_PAGE, None, collections)
        bounds = bounds_of(quick, candidates, leading, sides, choice)
        leaders = rank(segments, candidates, query, leading, sides, choice, bounds).components
        leaders = leaders[:, : len(OUTPUTS)]
    if request.boosts:
        added = boosts_at(segments, candidates.segments, candidates.rows, request.boosts, fields)
        candidates, sides = replace(candidates, boost=np.round(added.sum(axis=0), DECIMALS)), SIDES + 1
    choice = Choice.among(segments, candidates, request.top_k, request.page, request.group_by, collections)
    if request.fusion == "rrf":
        ranked = rank_reciprocally(segments, candidates, query, weights, sides, choice)
    else:
        bounds = bounds_of(quick, candidates, weights, sides, choice)
        ranked = rank(segments, candidates, query, weights, sides, choice, bounds)
    hits = hits_of(segments, ranked, query, weights, contents=request.contents, collections=collections)
    return hits, leaders
