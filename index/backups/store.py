"""Where backups lie: `<folder>/<collection>/<id>/`, each a collection's folder with a `backup.json`.

They stay when their collection is deleted. One that is being made or removed is called `<id>.partial`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tercet.index.backups.records import FILE, Backup, is_id, time_of
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.names import check_collection_name
from tercet.index.errors import BackupNotFoundError, DamagedIndexError
from tercet.index.files.directory import make_folder, remove_folder, rename
from tercet.index.files.lock import ExclusiveLock
from tercet.models.files import force

log = logging.getLogger("tercet")


class BackupStore:
    """The backups below one folder. Safe to use from several threads and processes."""

    def __init__(self, folder: Path) -> None:
        """folder: `backups/` of a data root; it is made with the first backup."""
        self._folder = folder

    def list(self, collection: str) -> list[Backup]:
        """The backups of a collection, which may have been deleted since; the newest first.

        One whose `backup.json` is damaged is left out, and logged. Raises InvalidNameError.
        """
        backups = []
        for path in self.folder_of(collection).glob(f"*/{FILE}"):
            if is_id(path.parent.name):
                try:
                    backups.append(Backup.read(path.parent))
                except DamagedIndexError as error:
                    log.error("a backup is left out of the list: %s", error)
        return sorted(backups, key=lambda backup: backup.id, reverse=True)

    def newest(self) -> dict[str, datetime]:
        """When the last backup of each collection that has any was begun; no file is read."""
        times: dict[str, datetime] = {}
        for path in self._folder.glob("*/*"):
            if is_id(path.name):
                with suppress(ValueError):  # somebody else's folder
                    begun, name = time_of(path.name), path.parent.name
                    times[name] = max(begun, times.get(name, begun))
        return times

    def get(self, collection: str, id: str) -> Backup:
        """Raises InvalidNameError, BackupNotFoundError or DamagedIndexError."""
        folder = self.folder_of(collection) / id
        if not is_id(id) or not folder.is_dir():
            raise BackupNotFoundError(
                f"collection {collection!r} has no backup {id!r:.80}; GET /collections/{collection}/backups "
                "lists them"
            )
        return Backup.read(folder)

    def delete(self, collection: str, id: str) -> None:
        """Removes a backup, also a damaged one: it is gone at once, and its files follow.

        Raises InvalidNameError, BackupNotFoundError, or CollectionBusyError while one is made or restored.
        """
        folder = self.folder_of(collection)
        if not is_id(id) or not (folder / id).is_dir():
            self.get(collection, id)  # which says so
        with self.locked(collection):
            try:
                rename(folder / id, folder / f"{id}.partial")
            except FileNotFoundError:
                self.get(collection, id)
            force(folder)
            self._remove_partial(collection)

    def layout(self, backup: Backup) -> CollectionLayout:
        """The folder of a backup."""
        return CollectionLayout(self.folder_of(backup.collection) / backup.id)

    def folder_of(self, collection: str) -> Path:
        """The folder of a collection's backups. Raises InvalidNameError."""
        return self._folder / check_collection_name(collection)

    @contextmanager
    def locked(self, collection: str) -> Iterator[None]:
        """Keeps others from making, removing and restoring backups of a collection meanwhile.

        Removes what killed ones left. Raises CollectionBusyError where somebody holds it.
        """
        folder = self.folder_of(collection)
        make_folder(folder)
        with ExclusiveLock(folder / "LOCK", f"the folder of backups of collection {collection!r}"):
            self._remove_partial(collection)
            yield

    def _remove_partial(self, collection: str) -> None:
        for remains in self.folder_of(collection).glob("*.partial"):
            remove_folder(remains)
