"""What shards answer in a search has to hold together, beyond what the codec of messages sees to."""

from __future__ import annotations

import numpy as np

from tercet.index.search.shard_search import Proposals, ShardHits
from tercet.models.representations import Int64


def check_proposals(proposals: Proposals) -> None:
    """Raises ValueError where a number is of no candidate, or something is not of all of them."""
    if proposals.is_everything:
        return
    for side in proposals.sides:
        _check_numbers(side.numbers, proposals.count)
    if len(proposals.ids) != proposals.count or (
        proposals.dense is not None and len(proposals.dense) != proposals.count
    ):
        raise ValueError("each candidate has an id and a score")


def check_hits(hits: ShardHits, candidates: int) -> None:
    """Raises ValueError where hits are not of so many candidates, or something is not of all hits."""
    _check_numbers(hits.numbers, candidates)
    if hits.collections is not None and len(hits.collections) != len(hits):
        raise ValueError("each candidate is of a collection")
    if not np.isfinite(hits.components).all():
        raise ValueError("a score is not finite")
    groups = hits.groups
    if groups is not None:
        _check_numbers(groups.counts, len(groups.values) + 1)
        if len(groups.counts) != len(hits) or groups.counts.sum() != len(groups.values):
            raise ValueError("the groups are not those of all candidates")
    if hits.contents is not None and len(hits.contents) > len(hits):
        raise ValueError("there are more contents than documents")


def _check_numbers(numbers: Int64, below: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < below):
        raise ValueError(f"a number is not from 0 to {below - 1}")
