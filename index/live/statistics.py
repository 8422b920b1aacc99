"""What a collection holds, and how far its upkeep is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tercet.index.catalog.manifest import Manifest
from tercet.index.collection import Collection
from tercet.index.inspection import added, part_bytes
from tercet.index.ledger.reader import LedgerReader
from tercet.index.live.state import LiveState
from tercet.index.segments.files import open_arrays
from tercet.index.segments.segment import Segment

NO_MANIFEST = Manifest("", "", ())


@dataclass(frozen=True, slots=True)
class CollectionCounts:
    """documents: those that searches find; deleted: rows of segments that a merge will drop; segments:
    published ones; memory_documents: what no segment has yet; ledger_entries: those that no segment has.
    """

    documents: int
    deleted: int
    segments: int
    memory_documents: int
    ledger_entries: int


@dataclass(frozen=True, slots=True)
class CollectionStatistics(CollectionCounts):
    """And part_bytes: what each part of the index takes in published segments; bytes of memory, and of the
    ledger's files. position: of the last write; flushed_position: of the last that segments hold. flushing,
    merging: under way now.
    """

    part_bytes: Mapping[str, int]
    memory_bytes: int
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
        arrays = (open_arrays(collection.layout.segment(entry.id), entry) for entry in manifest.segments)
        return manifest, added(map(part_bytes, manifest.segments, arrays))

    manifest, sizes = collection.of_current(of_manifest) or (NO_MANIFEST, {})
    position, ledger_bytes = _ledger(collection, manifest)
    return CollectionStatistics(
        **asdict(_counts(manifest, position)),
        part_bytes=sizes,
        memory_bytes=0,
        ledger_bytes=ledger_bytes,
        position=position,
        flushed_position=manifest.ledger_position,
        flushing=False,
        merging=False,
    )


def live_statistics(
    state: LiveState, ledger_bytes: int, *, flushing: bool, merging: bool
) -> CollectionStatistics:
    """Of one moment of a collection that this process writes: asks neither the disk nor for a lock."""
    return CollectionStatistics(
        **asdict(live_counts(state)),
        part_bytes=added(map(_part_bytes, state.published)),
        memory_bytes=state.memory_bytes,
        ledger_bytes=ledger_bytes,
        position=state.position,
        flushed_position=state.flushed_position,
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
        state.position - state.flushed_position,
    )


def published_counts(collection: Collection) -> CollectionCounts:
    """Of a collection that this process does not write. Raises as `published_statistics` does."""
    manifest = collection.manifest() or NO_MANIFEST
    return _counts(manifest, _ledger(collection, manifest)[0])


def _counts(manifest: Manifest, position: int) -> CollectionCounts:
    return CollectionCounts(
        manifest.documents,
        sum(entry.documents - entry.documents_kept for entry in manifest.segments),
        len(manifest.segments),
        0,
        position - manifest.ledger_position,
    )


def _ledger(collection: Collection, manifest: Manifest) -> tuple[int, int]:
    """The last position, and the bytes of the ledger's files."""
    if not collection.layout.ledger.exists():
        return manifest.ledger_position, 0
    with LedgerReader.open(collection.layout.ledger) as ledger:
        return ledger.last_position, ledger.total_bytes


def _part_bytes(segment: Segment) -> dict[str, int]:
    assert segment.entry is not None  # noqa: S101 - as of every published one
    return part_bytes(segment.entry, segment.arrays)
