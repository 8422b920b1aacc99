"""The collections that a server writes: each is opened at its first write, and stays so until the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from index.catalog.layout import CollectionLayout
from index.catalog.settings import CollectionSettings, check_collection_name
from index.collection import Collection, delete_collection, list_collections
from index.dense.kinds import Device
from index.errors import SearchIndexError
from index.live.collection import LiveCollection
from index.live.records import LiveLimits, LiveObserver, NoObserver
from index.live.statistics import CollectionStatistics
from index.snapshot import Snapshot
from service.exceptions import NotReadyError
from service.file_versions import version_of

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How the collections of a server are opened to be written: each with these limits.

    observer: is told what they do; device: where dense search of their published segments runs.
    """

    limits: LiveLimits = field(default_factory=LiveLimits)
    observer: LiveObserver = field(default_factory=NoObserver)
    device: Device = "cpu"


class OpenedCollection:
    """A live collection that is open, with its latest snapshot and those who write to it now."""

    def __init__(self, collection: Collection, options: LiveOptions) -> None:
        """Opens it; its ledger is carried out again where no segment holds it. Raises as LiveCollection."""
        self._path = str(collection.layout.settings)
        self._version = version_of(self._path)
        self._live = LiveCollection(collection, options.limits, options.observer, options.device)
        self._writers = 0
        self._closing = False
        self._changed = threading.Condition()
        self._seen: tuple[tuple[int, int], Snapshot] | None = None
        self._live.__enter__()

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created."""
        return self._live.settings

    @property
    def is_there(self) -> bool:
        """Whether it is still the collection of its folder, which somebody may have removed."""
        try:
            return version_of(self._path) == self._version
        except OSError:  # of this moment: what is open can still be searched
            return True

    def seen(self) -> Snapshot | None:
        """The snapshot after the last write, where it was made already. Takes no time."""
        seen = self._seen
        return seen[1] if seen is not None and seen[0] == self._live.version else None

    def snapshot(self) -> Snapshot:
        """The snapshot after the last acknowledged write.

        One that a flush or merge has replaced since answers the same, so `seen` may still give it; this
        gives the new one, and lets go of the other.
        """
        version = self._live.version
        snapshot = self._live.snapshot()
        self._seen = version, snapshot
        return snapshot

    def statistics(self) -> CollectionStatistics:
        """What it holds, and how far its upkeep is. Raises DamagedIndexError."""
        return self._live.stats()

    @contextmanager
    def writing(self) -> Iterator[LiveCollection | None]:
        """The collection, which is not closed meanwhile; None where it already is."""
        with self._changed:
            closing = self._closing
            self._writers += not closing
        try:
            yield None if closing else self._live
        finally:
            with self._changed:
                self._writers -= not closing
                self._changed.notify_all()

    def close(self) -> None:
        """Waits for those who write, and closes; the ledger holds what no segment has."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.wait_for(lambda: not self._writers)
        self._live.__exit__(None, None, None)


class LiveCollections:
    """Of one folder of collections. Safe to use from several threads."""

    def __init__(self, root: Path, options: LiveOptions) -> None:
        self._root = root
        self._options = options
        self._opened: dict[str, OpenedCollection] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._opened)

    def get(self, name: str) -> OpenedCollection | None:
        """The collection where it is open here."""
        opened = self._opened.get(name)
        return opened if opened is not None and opened.is_there else None

    @contextmanager
    def writing(self, name: str) -> Iterator[LiveCollection]:
        """The collection, opened to be written to, and not closed meanwhile.

        Raises InvalidNameError, CollectionNotFoundError, CollectionBusyError where another process or a
        build writes it, DamagedIndexError, or StorageError.
        """
        opened = self.get(name) or self._open(name)
        while True:
            with opened.writing() as live:
                if live is not None:
                    yield live
                    return
            opened = self._open(name)  # waits for who closes it; then it is gone, or there again

    def open_left(self) -> None:
        """Opens every collection whose ledger holds what no published segment does.

        One that cannot be opened is logged; it is searched as it was published, and read only.
        """
        for name in list_collections(self._root):
            if self._closed:
                return
            try:
                if Collection.open(self._root, name).has_unpublished():
                    self._open(name)
            except (SearchIndexError, OSError) as error:
                log.error(
                    "collection %s cannot be written, and is searched as it was published: %s", name, error
                )

    def delete(self, name: str) -> None:
        """Removes a collection and all it holds; writes that have begun are finished before.

        Raises CollectionNotFoundError, or CollectionBusyError where another process or a build writes it.
        """
        if not CollectionLayout(self._root / check_collection_name(name)).settings.exists():
            delete_collection(self._root, name)  # which says so; no lock is kept for it
        with self._lock_of(name):
            opened = self._opened.get(name)
            if opened is not None:
                opened.close()
            try:
                delete_collection(self._root, name)
            except BaseException:
                self._opened.pop(name, None)
                if opened is not None and opened.is_there:  # else what was written last would be hidden
                    self._opened[name] = self._open_now(name)
                raise
            self._opened.pop(name, None)

    def release(self) -> None:
        """Lets go of collections whose folder is gone, and of memory that flushes have freed."""
        for name, opened in tuple(self._opened.items()):
            if opened.is_there:
                opened.snapshot()
            else:
                with self._lock_of(name):
                    self._forget(name, opened)

    def close(self) -> None:
        """Closes all; nothing is opened any more."""
        self._closed = True
        for name in tuple(self._locks):  # so that it waits for those that are being opened
            with self._lock_of(name):
                if name in self._opened:
                    self._forget(name, self._opened[name])

    def _open(self, name: str) -> OpenedCollection:
        Collection.open(self._root, name)  # for a name that does not exist no lock is kept
        with self._lock_of(name):
            opened = self._opened.get(name)
            if opened is not None and opened.is_there:
                return opened
            if opened is not None:
                self._forget(name, opened)
            if self._closed:
                raise NotReadyError("this server is about to end; ask another one")
            opened = self._opened[name] = self._open_now(name)
            return opened

    def _open_now(self, name: str) -> OpenedCollection:
        return OpenedCollection(Collection.open(self._root, name), self._options)

    def _forget(self, name: str, opened: OpenedCollection) -> None:
        opened.close()
        if self._opened.get(name) is opened:
            del self._opened[name]

    def _lock_of(self, name: str) -> threading.Lock:
        return self._locks.setdefault(name, threading.Lock())
