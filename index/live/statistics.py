"""What a collection holds, and how far its upkeep is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from index.catalog.manifest import Manifest, SegmentEntry
from index.collection import Collection
from index.files.arrays import ArraySource
from index.inspection import part_bytes
from index.ledger.reader import LedgerReader
from index.live.state import LiveState
from index.segments.files import open_arrays
from index.segments.segment import Segment


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """What metrics tell of a collection: fields as of `CollectionStatistics`."""

    documents: int
    deleted: int
    segments: int
    memory_documents: int
    ledger_entries: int


@dataclass(frozen=True, slots=True)
class CollectionStatistics:
    """documents: those that searches find; deleted: rows of segments that a merge will drop; segments:
    published ones, and part_bytes what each part of the index takes in them; memory: what no segment has yet;
    ledger: entries that no segment has, and the bytes of its files. position: of the last write;
    flushed_position: of the last that segments hold. flushing, merging: under way now.
    """

    documents: int
    deleted: int
    segments: int
    part_bytes: Mapping[str, int]
    memory_documents: int
    memory_bytes: int
    ledger_entries: int
    ledger_bytes: int
    position: int
    flushed_position: int
    flushing: bool
    merging: bool


def published_statistics(collection: Collection) -> CollectionStatistics:
    """Of a collection that this process does not write: memory is empty, and nothing under way.

    Raises DamagedIndexError or CollectionNotFoundError.
    """

    def of_manifest(name: str) -> tuple[Manifest, dict[str, int]]:
        manifest = Manifest.read(collection.layout.manifest(name))
        opened = (
            (entry, open_arrays(collection.layout.segment(entry.id), entry)) for entry in manifest.segments
        )
        return manifest, all_part_bytes(opened)

    manifest, sizes = collection.of_current(of_manifest) or (Manifest("", "", ()), {})
    position, entries, ledger_bytes = manifest.ledger_position, 0, 0
    if collection.layout.ledger.exists():
        with LedgerReader.open(collection.layout.ledger) as ledger:
            position, ledger_bytes = ledger.last_position, ledger.total_bytes
            entries = position - manifest.ledger_position
    return CollectionStatistics(
        manifest.documents,
        sum(entry.documents - entry.documents_kept for entry in manifest.segments),
        len(manifest.segments),
        sizes,
        0,
        0,
        entries,
        ledger_bytes,
        position,
        manifest.ledger_position,
        flushing=False,
        merging=False,
    )


def live_statistics(
    state: LiveState, ledger_bytes: int, *, flushing: bool, merging: bool
) -> CollectionStatistics:
    """Of one moment of a collection that this process writes: asks neither the disk nor for a lock."""
    return CollectionStatistics(
        state.documents,
        sum(len(segment) - segment.documents_kept for segment in state.published),
        len(state.published),
        all_part_bytes((entry, arrays) for entry, arrays in map(_on_disk, state.published)),
        sum(segment.documents_kept for segment in state.aside + state.memory),
        state.memory_bytes,
        state.position - state.held,
        ledger_bytes,
        state.position,
        state.held,
        flushing=flushing,
        merging=merging,
    )


def live_counts(state: LiveState) -> CollectionCounts:
    """Of one moment of a collection that this process writes; takes microseconds."""
    return CollectionCounts(
        state.documents,
        sum(len(segment) - segment.documents_kept for segment in state.published),
        len(state.published),
        sum(segment.documents_kept for segment in state.aside + state.memory),
        state.position - state.held,
    )


def published_counts(collection: Collection) -> CollectionCounts:
    """Of a collection that this process does not write. Raises as `published_statistics` does."""
    manifest = collection.manifest() or Manifest("", "", ())
    last = manifest.ledger_position
    if collection.layout.ledger.exists():
        with LedgerReader.open(collection.layout.ledger) as ledger:
            last = ledger.last_position
    return CollectionCounts(
        manifest.documents,
        sum(entry.documents - entry.documents_kept for entry in manifest.segments),
        len(manifest.segments),
        0,
        last - manifest.ledger_position,
    )


def all_part_bytes(segments: Iterable[tuple[SegmentEntry, ArraySource]]) -> dict[str, int]:
    """Bytes of each part of the index over published segments and their arrays."""
    totals: dict[str, int] = defaultdict(int)
    for entry, arrays in segments:
        for part, size in part_bytes(entry, arrays).items():
            totals[part] += size
    return dict(totals)


def _on_disk(segment: Segment) -> tuple[SegmentEntry, ArraySource]:
    assert segment.entry is not None  # noqa: S101 - as of every published one
    return segment.entry, segment.arrays
