"""Backups of the collections that a server has: their writes are flushed before, restored beside writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tercet.index.backups.making import make_backup
from tercet.index.backups.records import Backup
from tercet.index.backups.restoring import restore_as, restore_into
from tercet.index.backups.store import BackupStore
from tercet.index.backups.verifying import BytesDone, nobody
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError
from tercet.service.collections.readable import CollectionDescription
from tercet.service.collections.registry import CollectionRegistry


class CollectionBackups:
    """Makes, lists, restores and removes them; `name` is a collection's or an alias's.

    Each call blocks, and may read all bytes of a collection. Safe to use from several threads.
    """

    def __init__(self, collections: CollectionRegistry, folder: Path) -> None:
        """folder: `backups/` of the data root."""
        self._collections = collections
        self._store = BackupStore(folder)

    def ages(self) -> Sequence[tuple[str, float]]:
        """Seconds since the last backup of each collection that is there and has any."""
        now = datetime.now(UTC)
        return [
            (name, (now - begun).total_seconds())
            for name, begun in sorted(self._store.newest().items())
            if (self._collections.root / name).is_dir()
        ]

    def list(self, name: str) -> list[Backup]:
        """The newest first, also of a collection that was deleted.

        Raises CollectionNotFoundError where there is neither a collection nor a backup.
        """
        name = self._collections.aliases.collection_of(name)
        backups = self._store.list(name)
        if not backups:
            Collection.open(self._collections.root, name)
        return backups

    def make(self, name: str, id: str | None = None, progress: BytesDone = nobody) -> Backup:
        """With every write that was acknowledged before. id: by default a new one; progress: of verifying.

        Raises InvalidNameError for an id that is none, or is there, CollectionNotFoundError,
        CollectionBusyError where another process holds writes that are not published, or a backup is made or
        restored just now, DamagedIndexError, or OSError.
        """
        collection = Collection.open(self._collections.root, name)
        self._collections.flush(collection.settings.name)
        return make_backup(collection, self._store, progress, id)

    def restore(
        self, name: str, id: str, new_name: str | None = None, progress: BytesDone = nobody
    ) -> CollectionDescription:
        """Restores into the collection itself, or as one called `new_name`; returns what it is then.

        A collection that was deleted is made again. Raises BackupNotFoundError, CollectionExistsError for a
        name that is taken, and what `restore_into` and `restore_as` raise.
        """
        name = self._collections.aliases.collection_of(name)
        backup = self._store.get(name, id)
        target = name if new_name is None else new_name
        collection = self._existing(name) if target == name else None
        if collection is None:
            made = restore_as(self._collections.root, target, self._store, backup, progress)
            self._collections.publish_new(made)
        else:
            with self._collections.writing(name) as live:
                restore_into(collection, live, self._store, backup, progress)
        return self._collections.describe(target)

    def delete(self, name: str, id: str) -> None:
        """Raises BackupNotFoundError, or CollectionBusyError while one is made or restored."""
        self._store.delete(self._collections.aliases.collection_of(name), id)

    def _existing(self, name: str) -> Collection | None:
        try:
            return Collection.open(self._collections.root, name)
        except CollectionNotFoundError:
            return None
