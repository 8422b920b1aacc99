"""Makes a backup of a collection while it is searched and written.

It is of one published snapshot, whose files never change: each gets a second name. What was written before
is flushed first. It is made under another name, verified, forced to the disk and renamed, so that it is there
whole or not at all.
"""

from __future__ import annotations

import shutil
from contextlib import suppress

from index.backups.copying import copy_collection
from index.backups.records import Backup, new_id, time_now
from index.backups.store import BackupStore
from index.backups.verifying import BytesDone, nobody, require_sound
from index.catalog.layout import CollectionLayout
from index.collection import Collection
from index.files.storage import sync_folder
from index.live.collection import LiveCollection


def make_backup(
    collection: Collection,
    store: BackupStore,
    live: LiveCollection | None = None,
    progress: BytesDone = nobody,
) -> Backup:
    """A new backup with every write that was acknowledged before.

    live: the collection, where this process writes it; where none does, it is opened for what no segment
    holds yet. progress: told of bytes verified and their total.

    Raises CollectionBusyError where another process writes the collection and holds writes that are not
    published, or makes or restores a backup of it; DamagedIndexError where the collection is damaged;
    StorageError or OSError. Then there is no new backup.
    """
    with store.held(collection.settings.name):
        if live is not None:
            live.flush()
        elif collection.has_unpublished():
            with LiveCollection(collection) as opened:
                opened.flush()
        return _make(collection, store, progress)


def _make(collection: Collection, store: BackupStore, progress: BytesDone) -> Backup:
    name = collection.settings.name
    folder, created = store.folder_of(name), time_now()
    id = next(id for id in iter(new_id, None) if not (folder / id).exists())
    stage = CollectionLayout(folder / f"{id}.partial")
    try:
        stage.folder.mkdir()
        manifest = copy_collection(collection, stage, name)
        require_sound(stage, manifest, progress)
        size_bytes = sum(path.stat().st_size for path in stage.folder.rglob("*") if path.is_file())
        backup = Backup(id, name, manifest.ledger_position, manifest.documents, size_bytes, created)
        backup.write(stage.folder)  # which forces the folder, too
        stage.folder.rename(folder / id)
        sync_folder(folder)
    except BaseException:
        with suppress(OSError):  # it may have got its name
            (folder / id).rename(stage.folder)
        shutil.rmtree(stage.folder, ignore_errors=True)
        raise
    return backup
