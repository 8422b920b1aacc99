"""Makes a published snapshot a collection of this machine, to be searched and written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.errors import NotContinuedError, OtherCollectionError
from tercet.cluster.snapshots.fetching import Fetched, fetch, remove_fetched
from tercet.cluster.snapshots.published import required_snapshot
from tercet.cluster.snapshots.record import BESIDE, PublishedSnapshot, files_of
from tercet.cluster.snapshots.stages import stage
from tercet.cluster.snapshots.transfers import BytesDone, nobody
from tercet.index.backups.restoring import copy_as, take_over
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.files.content import sha256_of
from tercet.index.live.collection import LiveCollection


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull did: the collection's name here, what it holds, and what had to be downloaded."""

    collection: str
    published: PublishedSnapshot
    fetched: Fetched


def pull(
    root: Path,
    name: str,
    store: ObjectStore,
    stages: Path,
    *,
    new_name: str | None = None,
    number: int | None = None,
    progress: BytesDone = nobody,
    force: bool = False,
) -> Pulled:
    """The newest snapshot of collection `name`, or that of a number, as one here, called `new_name` or the
    same.

    root: of the collections. A collection that is here already has its documents replaced in one step, as by
    a restored backup; one of another name appears at once and complete. Either goes on from the snapshot, at
    positions that no lost write has. progress: told of bytes and their total. force: what is here goes, also
    where it has writes that the snapshot has not.

    Raises SnapshotNotFoundError, OtherCollectionError where the URL has snapshots of another collection,
    NotContinuedError where the collection here has writes that the snapshot has not,
    DamagedSnapshotError, DamagedObjectError, UnreachableStoreError, CollectionBusyError where somebody writes
    or pulls the collection, FingerprintMismatchError where it has other settings, or OSError. Then what is
    here is as before, and what was downloaded is not downloaded again by the next pull.
    """
    published = required_snapshot(store, number)
    if published.collection != name:
        raise OtherCollectionError(
            f"{store.url} has snapshots of collection {published.collection!r}, not {name!r}; name that one, "
            f"and give --as {name} to call it so here"
        )
    target = new_name or name
    existing = _existing(root, target)
    with stage(stages, "pull", target) as layout:
        here = {} if existing is None else files_here(existing)
        fetched = fetch(store, published, layout, here, progress)
        source = Collection(layout, CollectionSettings.read(layout.settings))
        with LiveCollection(existing or copy_as(root, target, source)) as live:
            if existing is not None:
                if not force:
                    _require_continued(live, published)
                _declare(live, source.settings)
                take_over(existing, live, source, lambda: None)
            lineage, position = published.lineage or Lineage.new(), published.manifest.ledger_position
            live.resume(*lineage.resumed(position, live.position))
        remove_fetched(layout)
    return Pulled(target, published, fetched)


def files_here(collection: Collection) -> Mapping[str, Path]:
    """The files of a collection, by their SHA-256: of its segments the one that they were published with."""
    folder, manifest = collection.layout.folder, collection.manifest()
    beside = [folder / path for path in BESIDE if (folder / path).exists()]
    found = {sha256_of(path): path for path in beside}
    if manifest is not None:
        found |= {entry.sha256: folder / path for path, entry in files_of(manifest).items()}
    return found


def _existing(root: Path, name: str) -> Collection | None:
    """The collection of this name, which is no alias's."""
    if not CollectionLayout(root / check_collection_name(name)).settings.exists():
        return None
    return Collection.open(root, name)


def _require_continued(live: LiveCollection, published: PublishedSnapshot) -> None:
    """Raises NotContinuedError where a collection here has writes that a snapshot has not."""
    reached = live.lineage.last_write(live.position)
    if published.goes_on_from(live.lineage, reached) or not (reached or live.snapshot().documents):
        return
    if published.lineage is not None and published.lineage.id != live.lineage.id:
        why = f"is another one than snapshot {published.name}"
    else:
        why = f"has writes up to position {reached} that snapshot {published.name} lacks"
    raise NotContinuedError(
        f"collection {live.settings.name!r} here {why}: pull under another name (--as), or have the snapshot "
        "take its place with --force"
    )


def _declare(live: LiveCollection, settings: CollectionSettings) -> None:
    """Declares fields that were declared where a snapshot was pushed, if all else is the same."""
    here = live.settings
    if replace(settings, name=here.name, fields=here.fields, later_fields=here.later_fields) == here:
        live.declare({name: kind for name, kind in settings.fields.items() if name not in here.fields})
