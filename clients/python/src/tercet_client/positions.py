"""Positions of collections: a number, or behind a router one for each shard, as `3.17.2`."""

from __future__ import annotations

Position = int | str


def later(one: Position, other: Position) -> Position:
    """The later of two, shard by shard; 0 is before all."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if 0 in (one, other):
        return one or other
    pairs = zip(str(one).split("."), str(other).split("."), strict=True)
    return ".".join(str(max(int(mine), int(theirs))) for mine, theirs in pairs)
