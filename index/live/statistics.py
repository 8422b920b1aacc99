"""What a collection holds, and how far its upkeep is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from index.catalog.layout import CollectionLayout
from index.catalog.manifest import Manifest
from index.collection import Collection
from index.inspection import part_bytes
from index.ledger.reader import LedgerReader


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
        return manifest, all_part_bytes(collection.layout, manifest)

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


def all_part_bytes(layout: CollectionLayout, manifest: Manifest) -> dict[str, int]:
    """Bytes of each part of the index over all segments. Raises DamagedIndexError."""
    totals: dict[str, int] = defaultdict(int)
    for entry in manifest.segments:
        for part, size in part_bytes(layout, entry).items():
            totals[part] += size
    return dict(totals)
