"""Publishes a collection's current snapshot on an object store.

Files first, by their content, each verified; the manifest last, by creating the next number. Who creates that
first has it; others publish theirs after it. Nothing that is published ever changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tercet.cluster.objects.errors import AlreadyThereError
from tercet.cluster.objects.opening import require_creation
from tercet.cluster.objects.store import Moved, ObjectStore, StoredObject
from tercet.cluster.snapshots.errors import (
    NotContinuedError,
    OtherCollectionError,
    PublishedMeanwhileError,
)
from tercet.cluster.snapshots.published import FILES, file_path, manifest_path, newest_published
from tercet.cluster.snapshots.record import PublishedSnapshot, snapshot_of
from tercet.cluster.snapshots.stages import stage
from tercet.cluster.snapshots.transfers import BytesDone, move_all, nobody
from tercet.index.backups.copying import copy_collection
from tercet.index.catalog.lineage import Lineage, goes_on
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection

ATTEMPTS = 50  # of publishing after others
# What no manifest names may be collected; what is younger than this is not, and need not be sent again.
LEFT_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push did. published: the snapshot that is the newest now; new: whether it was not there before;
    sent_files, sent_bytes: what the store did not have yet.
    """

    published: PublishedSnapshot
    new: bool
    sent_files: int
    sent_bytes: int


def push(
    collection: Collection,
    store: ObjectStore,
    stages: Path,
    progress: BytesDone = nobody,
    *,
    repair: bool = False,
    force: bool = False,
) -> Pushed:
    """Publishes the current snapshot of a collection; who writes the collection flushes it before.

    stages: a folder on the collections' file system. progress: told of bytes sent and their total. Where the
    newest snapshot is the same, nothing is published. repair: every file is sent, whatever the store has.
    force: it takes the place of what is published in any case, and its positions go on above those.

    Raises OverwritingStoreError, OtherCollectionError where the URL has snapshots of a collection of another
    name, NotContinuedError where the newest has writes that this collection has not, PublishedMeanwhileError,
    CollectionBusyError where the collection is being pushed from here already, DamagedIndexError or
    DamagedObjectError for a file that is not as it was published, UnreachableStoreError, or OSError. Then
    nothing is published, and what was sent is not sent again by the next push.
    """
    now = require_creation(store)
    name = collection.settings.name
    if force:
        _take_place(collection, newest_published(store))
    with stage(stages, "push", name) as layout:
        lineage = Lineage.read(collection.layout.folder)  # before what it may be changed for
        manifest = copy_collection(collection, layout, collection.settings)
        mine = snapshot_of(layout, manifest, name, 1, lineage)
        sent: set[str] = set()
        for _ in range(ATTEMPTS):
            newest = newest_published(store)
            if newest is not None and newest.collection != name:
                raise OtherCollectionError(
                    f"{store.url} has snapshots of collection {newest.collection!r}, not {name!r}; push to a "
                    "URL of its own"
                )
            if newest is not None:
                _require_continued(store, mine, newest)
            wanted = {entry.sha256: layout.folder / path for path, entry in mine.files.items()}
            if repair and not sent:
                sent = _send(store, wanted, None, sent, now, progress, repair=True)
            if newest is not None and mine.holds(newest):
                return _pushed(newest, sent, new=False)
            mine = mine.numbered(1 if newest is None else newest.number + 1)
            sent |= _send(store, wanted, newest, sent, now, progress)
            try:
                store.create(manifest_path(mine.number), mine.content)
            except AlreadyThereError:
                continue
            return _pushed(mine, sent, new=True)
    raise PublishedMeanwhileError(
        f"others published at {store.url} {ATTEMPTS} times while this was pushed; nothing was "
        "published: try again"
    )


def _take_place(collection: Collection, newest: PublishedSnapshot | None) -> None:
    """Has the collection take the place of what is published, whatever that holds."""
    if newest is None:
        return
    with LiveCollection(collection) as live:
        lineage, position, published = live.lineage, live.position, newest.manifest.ledger_position
        if not goes_on(lineage, position, newest.lineage, published):
            resumed, until = lineage.resumed(position, published)
            live.resume(resumed if newest.lineage is None else resumed.in_place_of(newest.lineage), until)


def _require_continued(store: ObjectStore, mine: PublishedSnapshot, newest: PublishedSnapshot) -> None:
    there, here = newest.manifest.ledger_position, mine.manifest.ledger_position
    if mine.goes_on_from(newest.lineage, there):
        return
    if newest.lineage is not None and (mine.lineage is None or mine.lineage.id != newest.lineage.id):
        why = "another collection of this name, of which this one is no copy (was it made anew after a loss?)"
    else:
        why = f"writes up to position {there}, and this copy, at position {here}, lacks some of them"
    raise NotContinuedError(
        f"{store.url} has {why}: to go on with what is there, remove the collection here and pull it (tercet "
        "collection pull); to publish this one in its place, push it with --force"
    )


def _pushed(published: PublishedSnapshot, sent: set[str], *, new: bool) -> Pushed:
    sizes = {entry.sha256: entry.size_bytes for entry in published.files.values()}
    return Pushed(published, new, len(sent), sum(sizes.get(sha256, 0) for sha256 in sent))


def _send(
    store: ObjectStore,
    wanted: Mapping[str, Path],
    newest: PublishedSnapshot | None,
    sent: set[str],
    now: datetime,
    progress: BytesDone,
    *,
    repair: bool = False,
) -> set[str]:
    """Uploads what the store does not have, or to repair it every file, in the place of what it has; returns
    the checksums of these files.
    """
    there = {} if repair else {each.path: each for each in store.list(FILES)}
    named = set() if newest is None else {entry.sha256 for entry in newest.files.values()}
    missing = {
        sha256: path
        for sha256, path in wanted.items()
        if file_path(sha256) not in there or sha256 not in named | sent
    }
    sizes = {sha256: path.stat().st_size for sha256, path in missing.items()}
    uploaded: list[str] = []

    def move(sha256: str, moved: Moved) -> None:
        path = file_path(sha256)
        if _is_left(there.get(path), now) and store.has_file(path, missing[sha256], sha256):
            moved(sizes[sha256])
            return
        store.put_file(path, missing[sha256], sha256, moved)
        uploaded.append(sha256)

    move_all(sorted(missing, key=sizes.__getitem__, reverse=True), move, sum(sizes.values()), progress)
    return set(uploaded)


def _is_left(there: StoredObject | None, now: datetime) -> bool:
    """Whether an interrupted push left this, so lately that nobody collects it yet."""
    return there is not None and now - there.modified < LEFT_FOR
