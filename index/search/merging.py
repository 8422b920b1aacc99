"""What several shards found, put together as one machine does with its segments: pure functions of records.

Documents are numbered through all shards, in order of shard, segment and row. Of one id there is but one
shard, so ties are those of one machine: by id, then by collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import CandidateLimits, Page, Weights
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import Fusion, best, kept_of
from tercet.index.search.choice import Choice
from tercet.index.search.groups import Groups, GroupValues
from tercet.index.search.ranking import chosen, chosen_reciprocally
from tercet.index.search.retrieval import united
from tercet.index.search.shard_search import Proposals, ShardHits
from tercet.models.representations import Float32, Float64, Int64, offsets_of


def left_of(
    proposals: Sequence[Proposals], limits: CandidateLimits, nearest: int | None
) -> list[Int64 | None]:
    """What is left of each shard's candidates: numbers int64[n], ascending; None for all of them.

    Each side is cut to its limit by score, then id, over all shards. nearest: how many of the dense side's
    are left by exact score, None for all.
    """
    if any(shard.is_everything for shard in proposals):
        return [None] * len(proposals)
    firsts = offsets_of(np.array([len(shard) for shard in proposals], np.int64))
    ids = PackedBytes.concatenate([shard.ids for shard in proposals])
    kept = []
    for side, limit in enumerate((limits.dense, limits.sparse, limits.bm25)):
        numbers = np.concatenate(
            [shard.sides[side].numbers + first for shard, first in zip(proposals, firsts[:-1], strict=True)]
        )
        scores = np.concatenate([shard.sides[side].scores for shard in proposals])
        kept.append(_kept(numbers, scores, limit, ids))
    together = united(kept)
    if nearest is not None and nearest < len(together):
        dense = np.concatenate([shard.dense for shard in proposals if shard.dense is not None])[together]
        nearest_first = best(dense, nearest, lambda some: ids.gather(together[some]))
        together = np.sort(together[nearest_first])
    edges = np.searchsorted(together, firsts)
    return [
        together[start:stop] - first
        for start, stop, first in zip(edges[:-1], edges[1:], firsts[:-1], strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Merged:
    """The hits among what shards told, best first: shards: int64[n]; places: int64[n], among what that shard
    told; sums: float64[n].
    """

    shards: Int64
    places: Int64
    sums: Float64

    def __len__(self) -> int:
        return len(self.sums)


def merged(parts: Sequence[ShardHits], weights: Weights, fusion: Fusion, page: Page, top_k: int) -> Merged:
    """The hits among what all shards told. Each told all that may be one."""
    firsts = offsets_of(np.array([len(part) for part in parts], np.int64))
    ids = PackedBytes.concatenate([part.ids for part in parts])
    components = np.concatenate([part.components for part in parts])
    collections = [name for part in parts for name in part.collections or ()]
    groups = [part.groups for part in parts if part.groups is not None]
    choice = Choice(
        len(components),
        ids.gather,
        top_k,
        page,
        Groups.of(_together(groups)) if groups else None,
        (lambda numbers: [collections[number] for number in numbers.tolist()]) if collections else None,
    )
    choose = chosen_reciprocally if fusion == "rrf" else chosen
    hits, sums = choose(components, weights, choice)
    shards = np.searchsorted(firsts, hits, "right") - 1
    return Merged(shards, hits - firsts[shards], sums[hits])


def _kept(numbers: Int64, scores: Float32, limit: int, ids: PackedBytes) -> Int64:
    return numbers[kept_of(scores, limit, lambda some: ids.gather(numbers[some]), numbers)]


def _together(groups: Sequence[GroupValues]) -> GroupValues:
    return GroupValues(
        np.concatenate([shard.counts for shard in groups]),
        PackedBytes.concatenate([shard.values for shard in groups]),
    )
