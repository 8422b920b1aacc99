"""The collections that a server writes: each is opened at a write, and closed once nobody writes any more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tercet.index.catalog.fence import Fence, require_part
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection, delete_collection, list_collections
from tercet.index.dense.kinds import Device
from tercet.index.errors import CollectionNotFoundError, SearchIndexError, TooManyFilesError
from tercet.index.files.versions import version_of
from tercet.index.ledger.remote import RemoteLedgers
from tercet.index.live.collection import LiveCollection
from tercet.index.live.parts import WRITER_FILES
from tercet.index.live.records import LiveLimits, LiveObserver
from tercet.index.live.statistics import CollectionCounts, CollectionStatistics
from tercet.index.live.threads import LiveThreads
from tercet.index.snapshot import Snapshot
from tercet.index.wording import failure_text
from tercet.service.exceptions import NotReadyError
from tercet.service.load.clients import PART
from tercet.service.load.open_files import files_of_index

IDLE_SECONDS = 300.0  # after the last write a collection is closed, as soon as all is published
MOST_OPEN = 200  # with more, the one that nobody wrote to for longest is closed for the next

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How the collections of a server are opened to be written: each with these limits.

    observer: is told what they do; device: where dense search of their published segments runs; remote: gives
    the remote ledger of each, if they have such.
    """

    limits: LiveLimits = field(default_factory=LiveLimits)
    observer: LiveObserver = field(default_factory=LiveObserver)
    device: Device = "cpu"
    remote: RemoteLedgers | None = None


class OpenedCollection:
    """A live collection that is open, with its latest snapshot and those who write to it now."""

    def __init__(self, collection: Collection, options: LiveOptions, threads: LiveThreads) -> None:
        """Opens it; its ledger is carried out again where no segment holds it. Raises as LiveCollection.

        threads: of all collections.
        """
        self._path = str(collection.layout.settings)
        self._version = version_of(self._path)
        remote = None if options.remote is None else options.remote(collection.layout)
        self._live = LiveCollection(
            collection, options.limits, options.observer, options.device, threads, remote
        )
        self._writers = 0
        self._closing = False
        self._used = time.monotonic()  # when somebody wrote last
        self._changed = threading.Condition()
        self._seen: tuple[tuple[int, int, int], Snapshot] | None = None
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
        """What the collection holds, and how far its upkeep is. Raises DamagedIndexError."""
        return self._live.stats()

    def counts(self) -> CollectionCounts:
        """What metrics tell of it; takes microseconds."""
        return self._live.counts()

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
                self._used = time.monotonic()
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[LiveCollection | None]:
        """The same once nobody writes; who comes meanwhile waits until the context ends."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or not self._writers)
            yield None if self._closing else self._live

    @property
    def used(self) -> float:
        """When somebody wrote to it last, of `time.monotonic()`."""
        return self._used

    @property
    def is_idle(self) -> bool:
        """Whether everything is published, and nobody has anything to do with it."""
        return not self._writers and self._live.is_idle

    def close_published(self) -> bool:
        """Closes it where nobody writes, once all is published; whether it did.

        So searches of what is published find the same. Not while a build is under way, or segments are
        merged, nor where what was written cannot be published now.
        """
        with self._changed:
            if self._closing or self._writers or not self._live.may_close:
                return False
            self._closing = True
        try:
            self._live.flush()
        except Exception as error:  # noqa: BLE001 - whatever it is: what was written is still to be found
            log.error("collection %s stays open, as it cannot be flushed: %s", self.settings.name, error)
            with self._changed:
                self._closing = False
            return False
        try:
            self._live.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - whatever it is: all is published, and nothing is open
            log.error("collection %s: closing it failed: %s", self.settings.name, error)
        return True

    def close(self) -> None:
        """Waits for those who write, and closes; the ledger holds what no segment has."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.wait_for(lambda: not self._writers)
        self._live.__exit__(None, None, None)


class LiveCollections:
    """The collections of a folder that are open to be written. Safe to use from several threads."""

    def __init__(
        self,
        root: Path,
        options: LiveOptions,
        files: Callable[[], int] = files_of_index,
        closed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """files: how many files those that are open may hold; asked each time, as a server raises its limit
        when it starts. closed: is told the name of one that was closed for others, or as nobody wrote to it.
        """
        self._root = root
        self._threads = LiveThreads()
        self._files = files
        self._tell_closed = closed
        self._options = options
        self._opened: dict[str, OpenedCollection] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._left: set[str] = set()  # those whose last writes could not be opened
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
        build writes it, CollectionMovedError where a router takes it for another part, DamagedIndexError, or
        StorageError.
        """
        with self._in(name, OpenedCollection.writing) as live:
            require_part(live.settings.lineage, PART.get(), name)
            yield live

    def alone(self, name: str) -> AbstractContextManager[LiveCollection]:
        """The same once nobody else writes, and as long as the context lasts nobody does: they wait."""
        return self._in(name, OpenedCollection.alone)

    @contextmanager
    def _in(
        self, name: str, use: Callable[[OpenedCollection], AbstractContextManager[LiveCollection | None]]
    ) -> Iterator[LiveCollection]:
        opened = self.get(name) or self._open(name)
        while True:
            with use(opened) as live:
                if live is not None:
                    yield live
                    return
            opened = self._open(name)  # waits for who closes it; then it is gone, or there again

    def open_left(self) -> None:
        """Opens every collection whose ledger holds what no published segment does.

        One that cannot be opened is logged; it is searched as it was published, until it can be.
        """
        for name in list_collections(self._root):
            self._open_left(name)

    def delete(self, name: str) -> None:
        """Removes a collection and all it holds; writes that have begun are finished before.

        Raises CollectionNotFoundError, CollectionBusyError where another process or a build writes it, or
        CollectionFencedError where it moves to other servers.
        """
        Fence.read(CollectionLayout(self._root / check_collection_name(name))).require_open(name)
        if not CollectionLayout(self._root / check_collection_name(name)).settings.exists():
            delete_collection(self._root, name)  # which says so; no lock is kept for it
        if self._options.remote is not None:
            with self.writing(name) as live:
                live.end_remotely()
        with self._lock_of(name):
            opened = self._opened.get(name)
            if opened is not None:
                opened.close()
            try:
                delete_collection(self._root, name)
            except BaseException:
                self._opened.pop(name, None)
                if opened is not None and opened.is_there:  # else what was written last would be hidden
                    self._open_now(name)
                raise
            self._opened.pop(name, None)

    def release(self) -> None:
        """Lets go of collections whose folder is gone, of those that nobody writes to any more, and of memory
        that flushes have freed; tries again to open those that `open_left` could not.
        """
        for name in tuple(self._left):
            self._open_left(name)
        for name, opened in tuple(self._opened.items()):
            if opened.is_there:
                if opened.used + IDLE_SECONDS <= time.monotonic() and opened.is_idle:
                    self._close_published(name, opened)
                else:
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
        self._threads.close()

    def _open_left(self, name: str) -> None:
        if self._closed:
            return
        try:
            if Collection.named(self._root, name).has_unpublished():
                self._open(name)
        except CollectionNotFoundError:
            self._left.discard(name)
        except (SearchIndexError, OSError) as error:
            if name not in self._left:
                reason = failure_text(error)
                log.error("collection %s is searched without its last writes for now: %s", name, reason)
            self._left.add(name)
        else:
            if name in self._left:
                log.info("collection %s is searched with its last writes again", name)
            self._left.discard(name)

    def _open(self, name: str) -> OpenedCollection:
        Collection.named(self._root, name)  # for a name that does not exist no lock is kept
        with self._lock_of(name):
            opened = self._opened.get(name)
            if opened is not None and opened.is_there:
                return opened
            if opened is not None:
                self._forget(name, opened)
            if self._closed:
                raise NotReadyError("this server is about to end; ask another one")
            self._make_room(name)
            return self._open_now(name)

    def _open_now(self, name: str) -> OpenedCollection:
        collection = Collection.named(self._root, name)
        opened = self._opened[name] = OpenedCollection(collection, self._options, self._threads)
        return opened

    def _make_room(self, name: str) -> None:
        """Closes others where too many are open. Raises TooManyFilesError where all are in use."""
        allowed = self._files()
        most = min(MOST_OPEN, allowed // WRITER_FILES)
        if len(self._opened) >= most:
            self._close_oldest(lambda: len(self._opened) < most)
        if (len(self._opened) + 1) * WRITER_FILES > allowed:
            raise TooManyFilesError(
                f"collection {name!r} takes {WRITER_FILES} open files to be written, and the {allowed} that "
                "the index may have open are in use; try again in a moment, or raise the limit (ulimit -n)"
            )

    def _close_oldest(self, enough: Callable[[], bool]) -> None:
        """Closes collections that nobody wrote to for longest, ones with nothing to publish first."""
        opened = sorted(self._opened.items(), key=lambda item: (not item[1].is_idle, item[1].used))
        for name, live in opened:
            if enough():
                return
            self._close_published(name, live)

    def _close_published(self, name: str, opened: OpenedCollection) -> None:
        """Closes one, unless somebody opens, deletes or writes it now."""
        lock = self._lock_of(name)
        closed = False
        if lock.acquire(blocking=False):
            try:
                closed = self._opened.get(name) is opened and opened.close_published()
                if closed:
                    del self._opened[name]
            finally:
                lock.release()
        if closed:
            self._tell_closed(name)

    def _forget(self, name: str, opened: OpenedCollection) -> None:
        opened.close()
        if self._opened.get(name) is opened:
            del self._opened[name]

    def _lock_of(self, name: str) -> threading.Lock:
        return self._locks.setdefault(name, threading.Lock())
