"""Copies collections of a running server to an object store, and from there, as a re-sharding asks.

What is brought is a collection that follows its URL, until it is kept: `kept.json` then says where it came
from, and nothing replaces it any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.snapshots.errors import NotFollowedError
from tercet.cluster.snapshots.fetching import fetch
from tercet.cluster.snapshots.followed import FILE, Followed, take_up
from tercet.cluster.snapshots.published import required_snapshot
from tercet.cluster.snapshots.pushing import push
from tercet.cluster.snapshots.record import PublishedSnapshot
from tercet.cluster.snapshots.stages import stage
from tercet.cluster.snapshots.transfers import nobody
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.collection import Collection
from tercet.index.errors import CollectionBusyError, DamagedIndexError
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import remove_file, remove_folder, rename, write_json_atomically
from tercet.index.files.lock import ExclusiveLock
from tercet.models.files import force
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.copies.moving import Moved
from tercet.service.exceptions import SnapshotStoreError

KEPT = "kept.json"
RECEIVED = "receive"


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a collection came from, and for which version of the map of shards it was kept."""

    url: str
    number: int
    version: int

    @staticmethod
    def of(folder: Path) -> Kept | None:
        """What a collection's folder says, None where it was not kept. Raises DamagedIndexError."""
        try:
            record = read_json_object(folder / KEPT)
        except FileNotFoundError:
            return None
        match record:
            case {"url": str(url), "number": int(number), "version": int(version)}:
                return Kept(url, number, version)
        raise DamagedIndexError(f"{folder / KEPT} does not say where the collection came from; restore it")

    def write(self, folder: Path) -> None:
        """Writes it into a collection's folder."""
        write_json_atomically(folder / KEPT, asdict(self))


class SnapshotMoving:
    """Below one URL: see `tercet.service.copies.moving.Moving`."""

    def __init__(self, url: str, data: Path) -> None:
        """data: the data root. The store is not asked yet. Raises StoreAddressError."""
        self._store = open_store(url)
        self._stages = data / "snapshots"

    def push(self, collections: CollectionRegistry, name: str, folder: str) -> Moved:
        """Publishes a collection as its current manifest has it."""
        with _failing():
            collection = Collection.open(collections.root, name)
            return _moved(push(collection, self._store.below(folder), self._stages).published)

    def bring(self, collections: CollectionRegistry, name: str, folder: str, version: int) -> Moved:
        """Makes the newest snapshot the collection of its name, unless that is kept for the version."""
        with _failing():
            store = self._store.below(folder)
            layout = CollectionLayout(collections.root / name)
            kept = Kept.of(layout.folder)
            if kept is not None and (kept.url, kept.version) == (store.url, version):
                return _moved(required_snapshot(store, kept.number))
            published = required_snapshot(store)
            if published.collection != name:
                raise CollectionBusyError(
                    f"{store.url} has snapshots of collection {published.collection!r}, not {name!r}"
                )
            if kept is not None:
                raise CollectionBusyError(
                    f"collection {name!r} of this server was kept for version {kept.version} of the map of "
                    f"shards; remove it here, so that it can be brought for version {version}"
                )
            followed = Followed.of(layout.folder)
            if (
                followed is not None
                and store.url != followed.url
                and followed.url.startswith(f"{self._store.url}/")
            ):
                collections.delete(name)  # of another re-sharding, which was not ended
            with unwritten(layout, name):
                take_up(store, published, collections, self._stages, nobody)
            return _moved(published)

    @contextmanager
    def receiving(self, name: str, folder: str) -> Iterator[tuple[CollectionLayout, Moved]]:
        """Fetches the newest snapshot, and keeps its files for the next time."""
        with _failing():
            store = self._store.below(folder)
            published = required_snapshot(store)
            with stage(self._stages, RECEIVED, name) as layout:
                kept, fetched = _received(layout), layout.folder.parent / "files"
                here = {path.name: path for path in kept.iterdir()} if kept.exists() else {}
                fetch(store, published, layout, here, trusted=True)
                remove_folder(kept)
                rename(fetched, kept)
                yield layout, _moved(published)

    def end_receiving(self, name: str) -> None:
        """Removes the files."""
        with stage(self._stages, RECEIVED, name) as layout:
            remove_folder(_received(layout))

    def keep(self, collections: CollectionRegistry, name: str, version: int) -> None:
        """Writes `kept.json` in the place of what says that the collection follows."""
        folder = Collection.open(collections.root, name).layout.folder
        followed, kept = Followed.of(folder), Kept.of(folder)
        if followed is not None:
            Kept(followed.url, followed.number, version).write(folder)
            remove_file(folder / FILE)
            force(folder)
        elif kept is None or kept.version != version:
            raise CollectionBusyError(
                f"collection {name!r} was not brought here for version {version} of the map of shards, so "
                "there is nothing to keep"
            )


def _received(layout: CollectionLayout) -> Path:
    """What was fetched, by SHA-256."""
    return layout.folder.parent / "received"


def _moved(published: PublishedSnapshot) -> Moved:
    manifest = published.manifest
    return Moved(published.number, manifest.ledger_position, manifest.documents)


@contextmanager
def unwritten(layout: CollectionLayout, name: str) -> Iterator[None]:
    """Nobody writes the collection meanwhile, where it is there. Raises CollectionBusyError."""
    if not layout.settings.exists():
        yield
        return
    with ExclusiveLock(layout.lock, f"collection {name!r}"):
        yield


@contextmanager
def _failing() -> Iterator[None]:
    """Within it, what a store is at fault for is told as the service tells it."""
    try:
        yield
    except NotFollowedError as error:
        raise CollectionBusyError(str(error)) from error
    except ClusterError as error:
        raise SnapshotStoreError(str(error)) from error
