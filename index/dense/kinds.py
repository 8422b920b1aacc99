"""The dense kinds, and which one a collection has.

One kind serves a whole collection. `auto` chooses it from the number of vectors and a budget of memory, since
a search walks over a graph's vectors in no order, and is slow where they do not stay in memory. A collection
that has graphs or lists keeps their kind, however it grows, until all of it is built again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

DenseKind = Literal["auto", "flat", "hnsw", "ivfpq", "ivfrabitq"]
Device = Literal["cpu", "gpu"]
Vectors = Mapping[DenseKind, int]
"""How many vectors a collection's segments have, by their kinds."""

NO_VECTORS: Vectors = MappingProxyType({})

FLAT_VECTORS = 20_000  # of a collection: up to here a scan is as fast as the graph, and exact
INDEXED_VECTORS = 4_000  # of a segment in a larger one; a scan of fewer takes as long as a walk
SMALLEST_INDEX = 1_000  # vectors; fewer are scanned, whatever the kind: a part of the format
MEMORY_SHARE = 0.5  # of the machine's memory, for the vectors and graphs of a collection
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
LINK_BYTES = 272  # of a vector in a graph, on average


def usual_memory_bytes() -> int:
    """What vectors and graphs may take where a collection does not say: a share of what this machine has."""
    try:
        limit = int(CONTAINER_LIMIT.read_text("ascii"))
    except (OSError, ValueError):  # no container, or none with a limit
        limit = sys.maxsize
    return int(MEMORY_SHARE * min(limit, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))


def bytes_in_graphs(vectors: int, dimension: int) -> int:
    """What so many vectors take as float16 with their links."""
    return vectors * (2 * dimension + LINK_BYTES)


def collection_kind(
    requested: DenseKind, vectors: int, dimension: int, memory_bytes: int | None, present: Vectors
) -> tuple[DenseKind, str]:
    """The kind of a collection, and why it has that.

    requested: its setting; vectors: all that it has, those to come included; memory_bytes: what they and
    their graphs may take, None for `usual_memory_bytes`; present: those of segments that stay as they are.
    """
    if requested != "auto":
        return requested, "as the collection was created"
    memory_bytes = usual_memory_bytes() if memory_bytes is None else memory_bytes
    needed = bytes_in_graphs(vectors, dimension)
    sizes = f"{vectors:,} vectors with graphs take {_gib(needed)} of a budget of {_gib(memory_bytes)}"
    suited: DenseKind = "hnsw" if needed <= memory_bytes else "ivfrabitq"
    indexed = {kind: count for kind, count in present.items() if kind != "flat" and count}
    if indexed:
        kind = max(indexed, key=lambda kind: indexed[kind])
        other = "" if kind == suited else f"; built again, it would be {suited}"
        return kind, f"as most of it was built; {sizes}{other}"
    if vectors <= FLAT_VECTORS:
        return "flat", f"{vectors:,} vectors; up to {FLAT_VECTORS:,} a scan is as fast as a graph"
    return suited, sizes


def segment_kind(collection: DenseKind, requested: DenseKind, vectors: int, scanned: int) -> DenseKind:
    """The kind of a segment of so many vectors. scanned: with `auto`, fewer are scanned in any collection."""
    return collection if requested != "auto" or vectors >= scanned else "flat"


def kind_used(kind: DenseKind, vectors: int) -> DenseKind:
    """What a segment of so many distinct vectors has of its kind."""
    return "flat" if vectors < SMALLEST_INDEX else kind


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
