"""What a server follows: the snapshots of one collection, or of each collection in a folder of a store.

The first are at a URL with `manifests/` below it; else every folder directly below the URL that has one is a
collection, also one that comes later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore, StoredObject
from tercet.cluster.snapshots.errors import SnapshotError
from tercet.cluster.snapshots.followed import Followed, finish_interrupted, require_continued, take_up
from tercet.cluster.snapshots.published import MANIFESTS, newest_listed, read_published
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import list_collections
from tercet.index.errors import SearchIndexError
from tercet.index.files.lock import ExclusiveLock
from tercet.index.wording import failure_text
from tercet.service.collections.registry import CollectionRegistry

log = logging.getLogger("tercet")


class FollowingEndedError(SnapshotError):
    """The server ends while a snapshot is fetched."""


class Follower:
    """Brings a server the newest snapshots below a URL. Of one thread at a time, but for `close` and figures.

    It keeps others from writing the collections that it follows.
    """

    def __init__(self, url: str, data: Path) -> None:
        """data: the data root. The store is not asked yet. Raises StoreAddressError."""
        self._store = open_store(url)
        self._root, self._stages = data / "collections", data / "snapshots"
        self._followed: dict[str, Followed] = {}
        self._listed: dict[str, StoredObject | None] = {}  # by URL, the manifest that was read last
        self._locks: dict[str, ExclusiveLock] = {}
        self._looking = threading.Lock()
        self._begun = self._ended = False
        self._complete = False
        self._looked = time.monotonic()
        self._told = ""

    @property
    def ready(self) -> bool:
        """Whether all that was published at the first look is served, or what was followed before."""
        return self._complete or (self._begun and bool(self._followed))

    @property
    def silence_seconds(self) -> float:
        """Since every collection was last known to be the newest."""
        return time.monotonic() - self._looked

    def ages(self) -> Iterable[tuple[str, float]]:
        """Of each collection, the seconds since the snapshot that is served was published."""
        return [(name, followed.age_seconds) for name, followed in sorted(self._followed.items())]

    def look(self, collections: CollectionRegistry) -> None:
        """Takes up what is newer. What fails is logged once, and what was there is kept."""
        with self._looking:
            try:
                self._begin()
                self._look(collections)
                self._tell("")
            except FollowingEndedError:
                return
            except (ClusterError, SearchIndexError, OSError) as error:
                self._tell(f"{self._store.url} is not followed now: {failure_text(error)}")

    def close(self) -> None:
        """Ends a fetch under way, which the next start takes up, and lets others write the collections."""
        self._ended = True
        with self._looking:
            for lock in self._locks.values():
                lock.release()

    def _begin(self) -> None:
        """Finds what was followed before, once."""
        if self._begun:
            return
        finish_interrupted(self._root, self._stages)
        for name in list_collections(self._root):
            found = Followed.of(self._root / name)
            if found is not None and f"{found.url}/".startswith(f"{self._store.url}/"):
                self._note(name, found)
        self._begun = True

    def _look(self, collections: CollectionRegistry) -> None:
        failures: list[Exception] = []
        published = False
        for store in self._stores():
            try:
                published |= self._follow(store, collections)
            except FollowingEndedError:
                raise
            except (ClusterError, SearchIndexError, OSError) as error:
                failures.append(error)
        if failures:
            raise failures[0]
        if not published:
            raise SnapshotError(
                "nothing is published there yet: push a collection to it, or to a folder below it"
            )
        self._complete, self._looked = True, time.monotonic()

    def _stores(self) -> list[ObjectStore]:
        """The stores of all collections there are."""
        folders = self._store.folders()
        if MANIFESTS in folders:
            return [self._store]
        below = [self._store.below(folder) for folder in folders]
        return [store for store in below if MANIFESTS in store.folders()]

    def _follow(self, store: ObjectStore, collections: CollectionRegistry) -> bool:
        """Takes up what is newer at one collection's store; whether anything is published there."""
        number, listed = newest_listed(store)
        if number == 0 or listed == self._listed.get(store.url):
            return number > 0
        published = read_published(store, number)
        name, former = published.collection, self._followed.get(published.collection)
        if former is None or not former.is_of(published, store.url):
            require_continued(published, self._root)
            self._note(name, take_up(store, published, collections, self._stages, self._require_going))
            log.info("collection %s follows snapshot %s of %s", name, published.name, store.url)
        self._listed[store.url] = listed
        return True

    def _note(self, name: str, followed: Followed) -> None:
        if name not in self._locks:
            lock = ExclusiveLock(CollectionLayout(self._root / name).lock, f"collection {name!r}")
            lock.acquire()
            self._locks[name] = lock
        self._followed[name] = followed

    def _require_going(self, _done: int, _total: int) -> None:
        if self._ended:
            raise FollowingEndedError(f"{self._store.url} is followed no longer: this server ends")

    def _tell(self, message: str) -> None:
        """Logs a failure that is another than the last one."""
        if message and message != self._told:
            log.error("%s", message)
        self._told = message
