"""What a collection in shards has by now, as its shards have published it."""

from __future__ import annotations

from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import ShardMap, newest_map
from tercet.cluster.snapshots.published import file_path, required_snapshot
from tercet.cluster.snapshots.record import BESIDE, PublishedSnapshot
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.files.scratch import scratch_folder


def published_settings(store: ObjectStore, snapshot: PublishedSnapshot) -> CollectionSettings:
    """The settings of a published snapshot, with all fields that were declared since the creation.

    store: where it is published. Raises DamagedIndexError, and what the store raises.
    """
    with scratch_folder() as folder:
        layout = CollectionLayout(folder)
        for path in BESIDE:
            if path in snapshot.files:
                sha256 = snapshot.files[path].sha256
                store.get_file(file_path(sha256), layout.folder / path, sha256)
        return CollectionSettings.read(layout.settings)


def present_settings(store: ObjectStore, shards: ShardMap) -> CollectionSettings:
    """The settings of the collection that a map is of, as for a new one.

    Raises SnapshotNotFoundError, DamagedSnapshotError or DamagedIndexError.
    """
    shard = store.below(shards.shards[0].snapshots)
    return published_settings(shard, required_snapshot(shard)).of_new_collection(shards.collection)


def settings_at(url: str) -> CollectionSettings | None:
    """The same of the newest map at a URL, None where there is none. Raises what a store does, too."""
    store = open_store(url)
    shards = newest_map(store)
    return None if shards is None else present_settings(store, shards)
