"""Makes a backup of a collection while it is searched and written.

It is of one published snapshot, whose files never change: each gets a second name. It is made under another
name, verified, forced to the disk and renamed, so that it is there whole or not at all.
"""

from __future__ import annotations

from contextlib import suppress

from tercet.index.backups.copying import copy_collection
from tercet.index.backups.records import Backup, is_id, new_id
from tercet.index.backups.store import BackupStore
from tercet.index.backups.verifying import BytesDone, nobody, require_sound
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import Collection
from tercet.index.documents.datetimes import time_now
from tercet.index.errors import InvalidNameError
from tercet.index.files.directory import put_in_place, remove_folder, rename
from tercet.index.verified import note_verified


def make_backup(
    collection: Collection, store: BackupStore, progress: BytesDone = nobody, id: str | None = None
) -> Backup:
    """A new backup of the current snapshot; who writes the collection flushes it before.

    progress: told of bytes verified and their total. id: by default a new one. Raises InvalidNameError for an
    id that is none or is there already, CollectionBusyError where a backup of the
    collection is made, restored or removed just now, DamagedIndexError where the collection is damaged, or
    OSError. Then there is no new backup.
    """
    name = collection.settings.name
    with store.locked(name):
        folder, created = store.folder_of(name), time_now()
        if id is not None and (not is_id(id) or (folder / id).exists()):
            raise InvalidNameError(f"{id!r:.80} is no id of a backup, or there is one; leave it out")
        ids = iter(new_id, None) if id is None else [id]
        id = next(candidate for candidate in ids if not (folder / candidate).exists())
        stage = CollectionLayout(folder / f"{id}.partial")
        try:
            stage.folder.mkdir()
            manifest = copy_collection(collection, stage, collection.settings.of_new_collection(name))
            require_sound(stage, manifest, progress)
            note_verified(stage)
            size_bytes = sum(path.stat().st_size for path in stage.folder.rglob("*") if path.is_file())
            backup = Backup(id, name, manifest.ledger_position, manifest.documents, size_bytes, created)
            backup.write(stage.folder)  # which forces the folder, too
            put_in_place(stage.folder, folder / id)
        except BaseException:
            with suppress(OSError):  # it may have got its name
                rename(folder / id, stage.folder)
            remove_folder(stage.folder)
            raise
        return backup
