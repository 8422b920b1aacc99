"""What a server publishes: each of its collections whenever it changed, in a folder of its name below a URL.

That is where `tercet serve --follow URL` finds them. Each publication is a push: it sends what is new, and
goes on where one before was cut off. Where it is asked to, it removes older snapshots once a day.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.errors import UnreachableStoreError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.collecting import collect
from tercet.cluster.snapshots.errors import OtherCollectionError, SnapshotError
from tercet.cluster.snapshots.followed import FILE
from tercet.cluster.snapshots.published import MANIFESTS, manifest_path
from tercet.cluster.snapshots.pushing import push
from tercet.cluster.snapshots.record import BESIDE
from tercet.index.collection import Collection
from tercet.index.errors import CollectionNotFoundError, SearchIndexError
from tercet.index.files.versions import FileVersion, version_of
from tercet.index.wording import failure_text
from tercet.service.collections.registry import CollectionRegistry

log = logging.getLogger("tercet")

DAY = timedelta(days=1)  # between two collections of what is older than that


class PublishingEndedError(SnapshotError):
    """The server ends while a collection is published."""


@dataclass(slots=True)
class _Published:
    """Of one collection. known: when all of it was last known to be published, of `time.monotonic()`.

    versions, number: of the files that were published, and what as. told: the failure that was logged last.
    next_collection: when older snapshots are to be removed, of `time.monotonic()`.
    """

    known: float
    versions: tuple[FileVersion | None, ...] = ()
    number: int = 0
    failures: int = 0
    told: str = ""
    next_collection: float = 0.0


class Publisher:
    """Publishes a server's collections below a URL. Of one thread at a time, but for `close` and figures."""

    def __init__(
        self,
        url: str,
        data: Path,
        keep: int | None = None,
        trim: Callable[[ObjectStore, int], None] = lambda _store, _position: None,
    ) -> None:
        """data: the data root; keep: how many of the newest snapshots stay of each collection, and None for
        all; trim: is told of the store of each one that was published, and up to which position. The store is
        not asked yet. Raises StoreAddressError.
        """
        self._trim = trim
        self._store = open_store(url)
        self._keep = keep
        self._stages = data / "snapshots"
        self._published: dict[str, _Published] = {}
        self._looking = threading.Lock()
        self._ended = False

    def silences(self) -> Iterable[tuple[str, float]]:
        """Of each collection, the seconds since all that was written was last known to be published."""
        now = time.monotonic()
        return [(name, now - each.known) for name, each in sorted(self._published.items())]

    def failures(self) -> Iterable[tuple[str, float]]:
        """Of each collection, the attempts to publish it that failed."""
        return [(name, each.failures) for name, each in sorted(self._published.items())]

    def look(self, collections: CollectionRegistry) -> None:
        """Publishes what changed. What fails is counted, logged once, and tried again by the next look.

        Collections that follow another place, as one that a re-sharding brings, are left out.
        """
        with self._looking:
            names = [name for name in collections.names() if not (collections.root / name / FILE).exists()]
            self._published = {
                name: self._published.get(name) or _Published(time.monotonic()) for name in names
            }
            for name, published in self._published.items():
                try:
                    self._publish(collections, name, published)
                    published.told = ""
                    if self._keep is not None and time.monotonic() >= published.next_collection:
                        published.next_collection = time.monotonic() + DAY.total_seconds()
                        self._collect(name, self._keep)
                except (PublishingEndedError, CollectionNotFoundError):  # removed since they were listed
                    continue
                except (ClusterError, SearchIndexError, OSError) as error:
                    published.failures += 1
                    if published.told != failure_text(error):
                        published.told = failure_text(error)
                        log.error("collection %s is not published now: %s", name, published.told)
                    if isinstance(error, UnreachableStoreError):
                        return  # it would keep the others waiting, too

    def close(self) -> None:
        """Ends a publication under way, which the next start goes on with."""
        self._ended = True
        with self._looking:
            pass

    def _publish(self, collections: CollectionRegistry, name: str, published: _Published) -> None:
        """Publishes a collection where it changed, or where the store has lost it."""
        self._require_going(0, 0)
        begun = time.monotonic()
        collection = Collection.open(collections.root, name)
        if collection.has_unpublished():  # else a collection that nobody writes to would never be closed
            collections.flush(name)
        versions = _versions(collection)
        store = self._store.below(name)
        if versions != published.versions or store.find(manifest_path(published.number)) is None:
            self._require_room_for_several()
            pushed = push(collection, store, self._stages, self._require_going)
            published.versions, published.number = versions, pushed.published.number
            self._trim(store, pushed.published.manifest.ledger_position)
            if pushed.new:
                log.info(
                    "collection %s is published as snapshot %s of %s: %d documents, %d bytes sent",
                    name,
                    pushed.published.name,
                    store.url,
                    pushed.published.manifest.documents,
                    pushed.sent_bytes,
                )
        published.known = begun

    def _collect(self, name: str, keep: int) -> None:
        """Removes older snapshots. That it fails is logged: what is published is so nevertheless."""
        store = self._store.below(name)
        try:
            removed = collect(store, keep=keep, grace=DAY)
        except (ClusterError, OSError) as error:
            reason = failure_text(error)
            log.warning("older snapshots of collection %s stay for another day: %s", name, reason)
            return
        if removed.manifests or removed.files:
            log.info(
                "%d older snapshots and %d files of collection %s are removed from %s: %d bytes",
                removed.manifests,
                removed.files,
                name,
                store.url,
                removed.bytes,
            )

    def _require_room_for_several(self) -> None:
        if MANIFESTS in self._store.folders():
            raise OtherCollectionError(
                f"{self._store.url} has snapshots of one collection, so nobody would find those of several "
                "below it; give a folder above it, or another (publish_url)"
            )

    def _require_going(self, _done: int, _total: int) -> None:
        if self._ended:
            raise PublishingEndedError(f"{self._store.url}: this server ends, and publishes no more")


def _versions(collection: Collection) -> tuple[FileVersion | None, ...]:
    """Of the files that are others whenever what a push publishes is."""
    layout = collection.layout
    return tuple(
        version_of(str(path)) for path in (layout.current, *(layout.folder / each for each in BESIDE))
    )
