"""Publishes the segments of a shard as its snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tercet.cluster.objects.errors import AlreadyThereError
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.published import manifest_path, read_published
from tercet.cluster.snapshots.record import BESIDE, snapshot_of
from tercet.cluster.work.segments import send_file
from tercet.index.catalog.layout import FIRST_MANIFEST, CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionBusyError
from tercet.index.files.directory import write_atomically
from tercet.index.files.scratch import scratch_folder

NOTHING: Mapping[str, bytes] = MappingProxyType({})


def publish_shard(
    store: ObjectStore,
    settings: CollectionSettings,
    segments: Sequence[SegmentEntry],
    lineage: Lineage,
    position: int = 0,
    number: int = 1,
    beside: Mapping[str, bytes] = NOTHING,
) -> None:
    """Makes segments, whose files the store has, the snapshot of a shard with this number.

    store: of the shard; lineage: of a shard that is new; position: of the ledger, which the shard goes on
    after; beside: further files of the collection's folder, by name. One that is there already with the same
    content counts. Raises CollectionBusyError where another one is.
    """
    with scratch_folder() as folder:
        layout = CollectionLayout(folder)
        settings.write(layout.settings)
        for name, content in beside.items():
            write_atomically(layout.folder / name, [content])
        manifest = Manifest(FIRST_MANIFEST, settings.sha256, tuple(segments), position)
        snapshot = snapshot_of(layout, manifest, settings.name, number, lineage)
        for path in BESIDE:
            if path in snapshot.files:
                send_file(store, layout.folder / path, snapshot.files[path])
    try:
        store.create(manifest_path(number), snapshot.content)
    except AlreadyThereError as error:
        if not read_published(store, number).holds(snapshot):
            raise CollectionBusyError(
                f"{store.url}: snapshot {number} was published by somebody else meanwhile; run this again"
            ) from error
