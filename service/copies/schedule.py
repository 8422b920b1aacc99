"""Backups that a server makes by itself: of each collection so often, of which the newest stay."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from tercet.index.backups.records import Backup
from tercet.index.errors import CollectionNotFoundError, SearchIndexError
from tercet.index.wording import failure_text
from tercet.service.copies.backups import CollectionBackups

log = logging.getLogger("tercet")

BACKUP_LOOK_SECONDS = 60.0  # between two looks for collections whose last backup is too old


class Named(Protocol):
    """The collections that there are."""

    def names(self) -> list[str]: ...


class BackupSchedule:
    """Of one thread at a time, but for `failures`."""

    def __init__(self, backups: CollectionBackups, every_seconds: float, keep: int | None = None) -> None:
        """every_seconds: the age of a collection's last backup, whoever made it, at which another is made.
        keep: how many of the newest stay of each collection, and None for all.
        """
        self._backups = backups
        self._every_seconds = every_seconds
        self._keep = keep
        self._failures: Counter[str] = Counter()
        self._told: dict[str, str] = {}

    def failures(self) -> Iterable[tuple[str, float]]:
        """Of each collection that there were any of, the attempts that failed."""
        return sorted(self._failures.items())

    def look(self, collections: Named) -> None:
        """Backs up what is due. What fails is counted, logged once, and tried again by the next look."""
        ages = dict(self._backups.ages())
        for name in collections.names():
            if ages.get(name, self._every_seconds) < self._every_seconds:
                continue
            try:
                made = self._backups.make(name)
                log.info("collection %s is backed up as %s: %d documents", name, made.id, made.documents)
                for older in self._older(name):
                    self._backups.delete(name, older.id)
                self._told.pop(name, None)
            except CollectionNotFoundError:  # removed since they were listed
                continue
            except (SearchIndexError, OSError) as error:
                self._failures[name] += 1
                if self._told.get(name) != failure_text(error):
                    self._told[name] = failure_text(error)
                    log.error("collection %s is not backed up now: %s", name, self._told[name])

    def _older(self, name: str) -> list[Backup]:
        return [] if self._keep is None else self._backups.list(name)[self._keep :]
