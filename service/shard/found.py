"""What a shard found, as messages: made by a shard, read by a router."""

from __future__ import annotations

from typing import Any

import numpy as np

from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search.groups import GroupValues
from tercet.index.search.shard_search import HitParts, Proposals, ShardHits, Side
from tercet.service.shard.messages import Arrays, Message

SIDES = ("dense", "lexical", "bm25")


def proposal_arrays(found: Proposals) -> Arrays:
    """The arrays of what a shard proposes; what is empty is not there."""
    arrays: Arrays = {"ids": found.ids, "exact": found.dense}
    for name, side in zip(SIDES, found.sides, strict=False):
        if len(side.numbers):
            arrays |= {f"{name}_numbers": side.numbers, f"{name}_scores": side.scores}
    return arrays


def proposals_of(found: Message) -> Proposals:
    """What a shard proposes. Raises ValueError and its like."""
    count = int(found.values["count"])
    if found.values["everything"]:
        return Proposals(count, PackedBytes.of([]), (), None)
    sides = []
    for name in SIDES:
        numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
        if f"{name}_numbers" in found.arrays:
            numbers = found.numbers(f"{name}_numbers", count)
            scores = found.array(f"{name}_scores", np.float32, len(numbers))
        sides.append(Side(numbers, scores))
    exact = found.array_or_none("exact", np.float64, count)
    return Proposals(count, found.strings("ids", count), tuple(sides), exact)


def hit_arrays(hits: ShardHits) -> Arrays:
    """The arrays of candidates that may be hits."""
    groups = hits.groups
    return {
        "numbers": hits.numbers,
        "ids": hits.ids,
        "components": hits.components,
        "windows": hits.windows,
        "contents": hits.contents,
        "group_counts": None if groups is None else groups.counts,
        "group_values": None if groups is None else groups.values,
    }


def hit_values(hits: ShardHits) -> dict[str, Any]:
    """Their values."""
    return {"collections": hits.collections}


def hits_of(found: Message, candidates: int, sides: int) -> ShardHits:
    """Candidates of so many that may be hits, with so many scores each. Raises ValueError and its like."""
    numbers = found.numbers("numbers", candidates)
    count = len(numbers)
    collections = found.values["collections"]
    if collections is not None and len(collections) != count:
        raise ValueError("each candidate is of a collection")
    components = found.array("components", np.float64, count, sides)
    if not np.isfinite(components).all():
        raise ValueError("a score is not finite")
    groups = None
    if "group_counts" in found.arrays:
        counts = found.numbers("group_counts", 2**31, count)
        groups = GroupValues(counts, found.strings("group_values", int(counts.sum())))
    return ShardHits(
        numbers,
        found.strings("ids", count),
        components,
        collections,
        groups,
        found.array_or_none("windows", np.int64, count, 3),
        _contents(found, count),
    )


def part_arrays(parts: HitParts) -> Arrays:
    """The arrays of what was not told of hits before."""
    return {"late": parts.late, "windows": parts.windows, "contents": parts.contents}


def parts_of(found: Message, count: int, *, contents: bool) -> HitParts:
    """What was not told of so many hits before. contents: whether one of these at least has to be there.

    Raises ValueError and its like.
    """
    given = _contents(found, count)
    if contents and not (given and len(given)):
        raise ValueError("no contents are there")
    return HitParts(
        found.array("late", np.float64, count), found.array_or_none("windows", np.int64, count, 3), given
    )


def _contents(found: Message, count: int) -> PackedBytes | None:
    if "contents" not in found.arrays:
        return None
    contents = found.strings("contents")
    if len(contents) > count:
        raise ValueError("there are more contents than documents")
    return contents
