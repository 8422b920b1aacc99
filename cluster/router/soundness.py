"""What shards answer in a search has to hold together, beyond what the codec of messages sees to."""

from __future__ import annotations

import numpy as np

from tercet.index.search.shard_search import Proposals, ShardHits
from tercet.models.representations import Int64


def check_proposals(found: Proposals) -> None:
    """Raises ValueError where a number is of no candidate, or something is not of all of them."""
    if found.is_everything:
        return
    for side in found.sides:
        _check_numbers(side.numbers, found.count)
    if len(found.ids) != found.count or (found.dense is not None and len(found.dense) != found.count):
        raise ValueError("each candidate has an id and a score")


def check_hits(found: ShardHits, candidates: int) -> None:
    """Raises ValueError where hits are not of so many candidates, or something is not of all hits."""
    _check_numbers(found.numbers, candidates)
    if found.collections is not None and len(found.collections) != len(found):
        raise ValueError("each candidate is of a collection")
    if not np.isfinite(found.components).all():
        raise ValueError("a score is not finite")
    groups = found.groups
    if groups is not None:
        _check_numbers(groups.counts, len(groups.values) + 1)
        if len(groups.counts) != len(found) or groups.counts.sum() != len(groups.values):
            raise ValueError("the groups are not those of all candidates")
    if found.contents is not None and len(found.contents) > len(found):
        raise ValueError("there are more contents than documents")


def _check_numbers(numbers: Int64, below: int) -> None:
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < below):
        raise ValueError(f"a number is not from 0 to {below - 1}")
