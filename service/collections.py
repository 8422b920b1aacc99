"""The collections that a service answers from: opened once, opened again after each publication."""

from __future__ import annotations

import errno
import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from index.catalog.aliases import Aliases
from index.catalog.defaults import SearchDefaults
from index.catalog.layout import CollectionLayout
from index.catalog.settings import CollectionSettings
from index.collection import Collection, delete_collection, list_collections
from index.dense.index import Device, require_device
from index.errors import CollectionNotFoundError, DamagedIndexError
from index.segments.segment import Segment
from index.snapshot import Snapshot
from service.load.concurrency import SharedCalls
from service.load.pools import Pool

OPENING_THREADS = 2

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class CollectionDescription:
    """A collection's settings, stored defaults and state; `snapshot` is None before the first publication."""

    settings: CollectionSettings
    defaults: SearchDefaults | None
    snapshot: str | None
    documents: int


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """What a search needs of a collection: its snapshot, and its defaults where some are stored."""

    snapshot: Snapshot
    defaults: SearchDefaults | None


_Version = tuple[int, int, int]
"""What tells a file from one written before or later: inode, time in ns, size in bytes."""


@dataclass(frozen=True, slots=True)
class _Files:
    """The files that each search looks at; as strings, since to put a `Path` together takes longer."""

    settings: str
    current: str
    defaults: str

    @staticmethod
    def of(layout: CollectionLayout) -> _Files:
        return _Files(str(layout.settings), str(layout.current), str(layout.defaults))

    def version(self) -> tuple[_Version, _Version | None]:
        """Of the settings and of `CURRENT`. Raises FileNotFoundError where there is no collection."""
        settings = _version(self.settings)
        if settings is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.settings)
        return settings, _version(self.current)


@dataclass(frozen=True, slots=True)
class _ReadDefaults:
    """Defaults, and the file that they were read from."""

    version: _Version
    defaults: SearchDefaults


@dataclass(frozen=True, slots=True)
class _Opened:
    """A snapshot, and the files that made it the current one of its collection."""

    files: _Files
    version: tuple[_Version, _Version | None]
    snapshot: Snapshot


class CollectionRegistry:
    """Every collection below one folder, by its name or an alias. Safe to use from several threads.

    Opening a snapshot costs time, so the latest of each collection stays open, and the next takes over the
    segments that both have. A search keeps the one that it started with; a superseded one is freed when its
    last search lets go of it.
    """

    def __init__(self, root: Path, dense_device: Device = "cpu") -> None:
        """dense_device: where dense search runs. Raises DeviceUnavailableError."""
        require_device(dense_device)
        self.root = root
        self.aliases = Aliases(root)
        self._dense_device = dense_device
        self._opening: dict[str, threading.Lock] = {}
        self._opened: dict[str, _Opened] = {}
        self._defaults: dict[str, _ReadDefaults] = {}
        self._pool = Pool("opening", OPENING_THREADS)
        self._open = SharedCalls(self.snapshot, self._pool)

    def snapshot(self, name: str) -> Snapshot:
        """The collection's current snapshot, also when another process published it.

        Raises InvalidNameError, CollectionNotFoundError or DamagedIndexError.
        """
        name = self.aliases.collection_of(name)
        current = self._current(name)
        if current is not None:
            return current
        files = _Files.of(CollectionLayout(self.root / name))
        _require(name, files)  # for a name that does not exist no lock is kept
        with self._opening.setdefault(name, threading.Lock()):
            current = self._current(name)  # by now
            if current is None:
                version = _require(name, files)  # of one that is replaced meanwhile, which is opened again
                collection = Collection.open(self.root, name)
                former = self._take_segments(name, collection.settings)
                current = collection.snapshot(self._dense_device, former)
                self._opened[name] = _Opened(files, version, current)
            return current

    async def open(self, name: str) -> Snapshot:
        """The same, awaited: in a thread only where the snapshot is not open yet.

        To see that it still is the current one takes less time than a thread takes to begin.
        """
        name = self.aliases.collection_of(name)
        return self._current(name) or await self._open(name)

    async def open_with_defaults(self, name: str) -> SearchTarget:
        """The current snapshot with the stored defaults, also when another process wrote them.

        Raises as `snapshot` does; DamagedIndexError for damaged defaults, too.
        """
        name = self.aliases.collection_of(name)
        snapshot = await self.open(name)
        opened = self._opened.get(name)
        return SearchTarget(snapshot, None if opened is None else self._current_defaults(name, opened))

    def describe(self, name: str) -> CollectionDescription:
        """Settings, defaults and state, without opening the snapshot.

        Raises CollectionNotFoundError or DamagedIndexError.
        """
        collection = Collection.open(self.root, name)
        manifest, defaults = collection.manifest(), collection.defaults()
        if manifest is None:
            return CollectionDescription(collection.settings, defaults, None, 0)
        documents = sum(segment.documents for segment in manifest.segments)
        return CollectionDescription(collection.settings, defaults, manifest.name, documents)

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription:
        """An empty collection. Raises InvalidNameError or CollectionExistsError."""
        return CollectionDescription(Collection.create(self.root, name, settings).settings, None, None, 0)

    def delete(self, name: str) -> None:
        """Removes a collection and all it holds; searches under way still finish.

        Raises CollectionNotFoundError, CollectionAliasedError where an alias means it, or
        CollectionBusyError while it is being built.
        """
        delete_collection(self.root, name)
        self._forget(name)

    def list(self) -> list[CollectionDescription]:
        """All collections, in order of name."""
        descriptions = []
        for name in sorted(list_collections(self.root)):
            try:
                descriptions.append(self.describe(name))
            except CollectionNotFoundError:
                continue  # deleted since the folder was listed
            except DamagedIndexError as error:
                log.error("collection %s is left out of the list: %s", name, error)
        return descriptions

    def release_superseded(self) -> None:
        """Lets go of snapshots that are current no more: another process removed or rebuilt the collection.

        A search would notice that, but none may come; meanwhile the files would keep their room on the disk.
        """
        for name, opened in tuple(self._opened.items()):
            if not _is_current(name, opened):
                self._forget(name)

    def close(self) -> None:
        """Lets go of every open snapshot."""
        self._pool.close()
        self._opened.clear()

    def _current(self, name: str) -> Snapshot | None:
        """The open snapshot where it is the current one."""
        opened = self._opened.get(name)
        return opened.snapshot if opened is not None and _is_current(name, opened) else None

    def _take_segments(self, name: str, settings: CollectionSettings) -> dict[str, Segment]:
        """The segments of the snapshot that was open, if it had these settings; it is not kept any longer."""
        former = self._opened.pop(name, None)
        if former is None or former.snapshot.settings != settings:
            return {}
        return former.snapshot.published_segments()

    def _forget(self, name: str) -> None:
        self._opened.pop(name, None)
        self._opening.pop(name, None)
        self._defaults.pop(name, None)

    def _current_defaults(self, name: str, opened: _Opened) -> SearchDefaults | None:
        """The stored defaults, read again only where their file is another one."""
        path = opened.files.defaults
        version = _version(path)
        if version is None:
            self._defaults.pop(name, None)
            return None
        read = self._defaults.get(name)
        if read is None or read.version != version:
            # A file replaced since then is newer than noted here, and so is read once more.
            defaults = SearchDefaults.read(Path(path), opened.snapshot.settings)
            read = self._defaults[name] = _ReadDefaults(version, defaults)
        return read.defaults


def _is_current(name: str, opened: _Opened) -> bool:
    try:
        return opened.files.version() == opened.version
    except FileNotFoundError:
        return False
    except OSError as error:  # of this moment or this process: what is open can still be searched
        log.error("collection %s: cannot tell whether it was published again: %s", name, error)
        return True


def _require(name: str, files: _Files) -> tuple[_Version, _Version | None]:
    """The version of a collection's files. Raises CollectionNotFoundError."""
    try:
        return files.version()
    except FileNotFoundError as error:
        raise CollectionNotFoundError(
            f"collection {name!r} does not exist; create or build it first"
        ) from error


def _version(path: str) -> _Version | None:
    """None where there is no such file."""
    try:
        stat = os.stat(path)  # noqa: PTH116 - for the reason given at `_Files`
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
