"""The latest snapshots of collections that are not written here: each is opened once for all searches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.dense.kinds import Device
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.service.collections.files import SearchedFiles, Versions

OpenNext = Callable[[Device, Snapshot | None], Snapshot]
"""Opens a snapshot on a device, with segments of the one that is open."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A snapshot, and the files that made it the current one of its collection."""

    files: SearchedFiles
    versions: Versions
    snapshot: Snapshot

    def is_current(self, name: str) -> bool:
        return self.files.are(name, self.versions)


@dataclass(frozen=True, slots=True)
class ToOpen:
    """A collection whose current snapshot is not open, or an alias of several of which one's is not.

    stored: the collection whose stored defaults and effort count; written: whether what is not open is
    written here.
    """

    name: str
    stored: str
    written: bool


class OpenSnapshots:
    """By the collections' own names. Safe to use from several threads."""

    def __init__(self, root: Path, device: Device) -> None:
        self._root = root
        self._device: Device = device
        self._opening: dict[str, threading.Lock] = {}
        self._opened: dict[str, _Opened] = {}

    def __len__(self) -> int:
        return len(self._opened)

    def names(self) -> tuple[str, ...]:
        """Of whose collections snapshots are open, current or not."""
        return tuple(self._opened)

    def current(self, name: str) -> Snapshot | None:
        """The open snapshot where it is the current one."""
        opened = self._opened.get(name)
        return opened.snapshot if opened is not None and opened.is_current(name) else None

    def open(self, name: str) -> Snapshot:
        """The current snapshot. Raises InvalidNameError, CollectionNotFoundError, or DamagedIndexError."""
        current = self.current(name)
        if current is not None:
            return current
        files = SearchedFiles.of(CollectionLayout(self._root / name))
        files.required(name)  # for a name that does not exist no lock is kept
        with self._opening.setdefault(name, threading.Lock()):
            current = self.current(name)  # by now
            if current is None:
                versions = files.required(name)  # of one that is replaced meanwhile, which is opened again
                collection = Collection.named(self._root, name)
                former = self._take_segments(name, collection.settings)
                current = collection.snapshot(self._device, former)
                self._opened[name] = _Opened(files, versions, current)
            return current

    def replace(self, name: str, open_next: OpenNext, publish: Callable[[], None]) -> None:
        """Makes another snapshot the current one; no search waits until it is open.

        publish: makes its files the current ones. Raises what both do.
        """
        opened = self._opened.get(name)
        snapshot = open_next(self._device, None if opened is None else opened.snapshot)
        with self._opening.setdefault(name, threading.Lock()):
            publish()
            files = SearchedFiles.of(CollectionLayout(self._root / name))
            self._opened[name] = _Opened(files, files.required(name), snapshot)

    def forget(self, name: str) -> None:
        """Lets go of a collection's snapshot, which is freed when its last search lets go of it."""
        self._opened.pop(name, None)
        self._opening.pop(name, None)

    def clear(self) -> None:
        """Lets go of all of them."""
        self._opened.clear()

    def _take_segments(self, name: str, settings: CollectionSettings) -> dict[str, Segment]:
        """The segments of the snapshot that was open, if it had these settings; it is not kept any longer."""
        former = self._opened.pop(name, None)
        if former is None or former.snapshot.settings != settings:
            return {}
        return former.snapshot.published_segments()
