"""Searches where the engine computes late interaction itself: most candidates are then not read in full.

Token vectors of all candidates are megabytes, and most candidates are no hits. Their dense and lexical scores
come from what is small. What the engine calls their late interaction is ours, but for float32, or more: it
takes windows together. So the weighted sum of these is what each scores at most, and only those are read in
full that may score as much as the last hit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.cluster.backends.candidates import NEAR, SPARE
from tercet.index.candidates import CandidateLimits, Page, SearchResult
from tercet.index.search.snapshot_query import SnapshotQuery
from tercet.index.segments.rows import DocumentRows
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Float64


@dataclass(frozen=True, slots=True)
class Reading:
    """How documents are read by their ids. late: what their late interaction is at most, float64[n]; full:
    all that is stored of them; snapshot: made of that.
    """

    late: Callable[[Sequence[str]], Float64]
    full: Callable[[Sequence[str]], list[DocumentRows]]
    snapshot: Callable[[Sequence[DocumentRows]], Snapshot]


def narrowed_search(proposed: Snapshot, reading: Reading, asked: SnapshotQuery, wanted: int) -> SearchResult:
    """The hits among what is left of proposals, as a search among all of them read in full.

    proposed: without token vectors; asked: where late interaction takes nothing away; wanted: its `wanted`.
    """
    ids, highest = _bounds(proposed, reading, asked)
    order = np.argsort(-highest, kind="stable")
    taken, rows = min(len(ids), wanted + SPARE), list[DocumentRows]()
    first = 0
    while True:
        rows += reading.full([ids[place] for place in order[first:taken].tolist()])
        found = _search(reading.snapshot(rows), taken, wanted, asked)
        floor = -np.inf if asked.page.min_score is None else asked.page.min_score
        least = found.hits[-1].score if len(found.hits) == wanted else floor
        first, taken = taken, int((highest >= least).sum())
        if taken <= first:
            return replace(found, hits=found.hits[asked.page.offset :])


def _bounds(proposed: Snapshot, reading: Reading, asked: SnapshotQuery) -> tuple[list[str], Float64]:
    """The ids of what is left of proposals, and what each scores at most, float64[K]."""
    left = proposed.retrieve(asked.query, candidates=asked.limits, filter=asked.filter)
    ids, scores = proposed.score(asked.query, left)
    without = set(asked.without)
    kept = [place for place, id in enumerate(ids) if id not in without]
    ids, scores = [ids[place] for place in kept], scores[kept]
    weights = asked.weights
    parts = [weights.dense * scores[:, 0], weights.sparse * scores[:, 1]]
    if weights.colbert:
        parts.append(weights.colbert * reading.late(ids))
    if asked.boosts:
        parts.append(proposed.boosts_of(ids, asked.boosts).sum(axis=0))
    largest = abs(weights.dense) + abs(weights.sparse) + weights.colbert
    off = NEAR * (np.abs(parts).sum(axis=0) + largest)
    return ids, np.sum(parts, axis=0) + off


def _search(read: Snapshot, count: int, wanted: int, asked: SnapshotQuery) -> SearchResult:
    """The best of what was read, which are candidates all."""
    limits = asked.limits
    dense, sparse = (max(1, count) if limit else 0 for limit in (limits.dense, limits.sparse))
    page = Page(min_score=asked.page.min_score)
    return read.answer(
        replace(
            asked,
            top_k=wanted,
            candidates=CandidateLimits(dense, sparse, 0),
            filter=None,
            page=page,
            without=(),
            leading=None,  # whoever leads by other weights may not have been read
        )
    )
