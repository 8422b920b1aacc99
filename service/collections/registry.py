"""The collections that a service answers from: opened once, opened again after each publication.

Those that it writes itself (`service/collections/live.py`) answer with each write. Several that an alias
means answer as one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from tercet.index.catalog.aliases import Aliases
from tercet.index.catalog.alike import united_settings
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.fence import require_part
from tercet.index.catalog.layout import EMPTY_NAME
from tercet.index.catalog.settings import CollectionSettings, require_kept
from tercet.index.collection import Collection, collection_folders, list_collections
from tercet.index.dense.gpu import require_device
from tercet.index.errors import CollectionNotFoundError, DamagedIndexError, SearchIndexError
from tercet.index.files.directory import remove_folder
from tercet.index.live.collection import LiveCollection
from tercet.index.live.statistics import CollectionCounts, CollectionStatistics, published_statistics
from tercet.index.snapshot import Snapshot
from tercet.models.cores import usable_cores
from tercet.service.collections.counts import PublishedCounts
from tercet.service.collections.live import LiveCollections, LiveOptions
from tercet.service.collections.open_snapshots import OpenNext, OpenSnapshots, ToOpen
from tercet.service.collections.positions import Position, whole_position
from tercet.service.collections.readable import CollectionDescription, SearchTarget
from tercet.service.collections.small_files import SmallFiles
from tercet.service.collections.united_snapshots import UnitedSnapshots
from tercet.service.exceptions import PositionAheadError, PositionNotReachedError
from tercet.service.load.clients import PART
from tercet.service.load.concurrency import SharedCalls
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading
from tercet.service.load.relay import on_loop

OPENING_THREADS = 2
RENEWING_THREADS = 2
REACHING_SECONDS = 0.02  # between two looks whether a position is reached
LOOKING_THREADS = 4  # each looks at the files of one collection: a slow disk keeps those of others waiting
DEFAULT_OPTIONS = LiveOptions()

log = logging.getLogger("tercet")


class CollectionRegistry:
    """Every collection below one folder, by its name or an alias. Safe to use from several threads.

    Opening a snapshot costs time, so the latest of each collection stays open, and the next takes over the
    segments that both have. A search keeps the one that it started with; a superseded one is freed when its
    last search lets go of it. A collection that was written here gives the snapshot after its last write.
    """

    def __init__(self, root: Path, options: LiveOptions = DEFAULT_OPTIONS) -> None:
        """options: of what is written here; dense search of all others runs on its device, too.

        Raises DeviceUnavailableError.
        """
        require_device(options.device)
        self.root = root
        self.aliases = Aliases(root)
        self._open_snapshots = OpenSnapshots(root, options.device)
        self._united = UnitedSnapshots()
        self._files = SmallFiles(root)
        self._counts = PublishedCounts(root)
        self._live = LiveCollections(root, options, closed=self._note_counts)
        self._has_remotes = options.remote is not None
        self._opening_pool = Pool("opening", OPENING_THREADS)
        self._renewing_pool = Pool("renewing", RENEWING_THREADS)
        self.looking_pool = Pool("looking", LOOKING_THREADS)
        self._looks = {
            (defaults, effort): SharedCalls(
                partial(self._looked, defaults=defaults, effort=effort), self.looking_pool
            )
            for defaults in (False, True)
            for effort in (False, True)
        }
        self._look_to_write = SharedCalls(self._looked_to_write, self.looking_pool)
        self._open = SharedCalls(self.snapshot, self._opening_pool)
        self._renew = SharedCalls(self.snapshot, self._renewing_pool)
        self._open_to_write = SharedCalls(self._opened_to_write, self._opening_pool)

    def snapshot(self, name: str) -> Snapshot:
        """The collection's current snapshot, with all that was written here or published by another process.

        Of an alias of several collections, those of all of them as one.
        Raises InvalidNameError, CollectionNotFoundError, UnlikeCollectionsError for several that cannot be
        searched as one by now, or DamagedIndexError.
        """
        names = self.aliases.collections_of(name)
        if len(names) == 1:
            return self._snapshot(names[0])
        return self._united.of(name, [self._snapshot(own_name) for own_name in names])

    def _snapshot(self, name: str) -> Snapshot:
        """The current snapshot of one collection, by its own name."""
        live = self._live.get(name)
        if live is not None:
            return live.snapshot()
        return self._open_snapshots.open(name)

    def replace(self, name: str, open_next: OpenNext, publish: Callable[[], None]) -> None:
        """Makes another snapshot of a collection that is not written here the current one; no search waits
        until it is open.

        open_next: opens and warms it, on a device, with segments of the one that is open; publish: makes its
        files the current ones. Raises what they do.
        """
        self._open_snapshots.replace(name, open_next, publish)

    async def open(self, name: str, options: Reading = ANY_TIME) -> Snapshot:
        """The current snapshot, awaited. options: of no use where no other server is asked."""
        return (await self.open_with_defaults(name, options, defaults=False, effort=False)).snapshot

    async def open_with_defaults(
        self, name: str, options: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[Snapshot]:
        """The current snapshot with the stored defaults and effort, also when another process wrote them.

        Whoever asks at the same time shares one look at the files, which begins after all of them asked.

        Raises as `snapshot` does; DamagedIndexError for damaged ones that are asked for, too, and
        CollectionMovedError where a router takes the collection for another part.
        """
        target = await self._looks[defaults, effort](name)
        if not isinstance(target, SearchTarget):
            opened = await (self._renew if target.written else self._open)(target.name)
            target = await self.looking_pool.run(self._files.target, target.stored, opened, defaults, effort)
        require_part(target.snapshot.settings.lineage, PART.get(), name)
        return target

    async def reach(self, name: str, position: int, deadline: Deadline) -> None:
        """Waits until searches find what was written up to a position.

        Raises SeveralCollectionsError, PositionLostError, PositionAheadError where it is written here, or by
        nobody now, and no write has the position yet, PositionNotReachedError at the deadline, and as
        `snapshot` does.
        """
        own = await self.looking_pool.run(self.aliases.collection_of, name)
        settled = False
        while True:
            settled |= self._live.get(own) is not None  # asked before the look, which then has its last write
            snapshot = await self.open(own)
            require_kept(snapshot.settings, position)
            reached = snapshot.position
            if reached >= position:
                return
            if settled:
                raise PositionAheadError(
                    f"collection {own!r} is at position {reached}, and min_position is {position}, which no "
                    "write has yet; use the position of a write's answer"
                )
            settled = await self.looking_pool.run(self._is_idle, own)
            if settled:
                continue
            left_seconds = deadline.remaining_seconds
            if not left_seconds:
                raise PositionNotReachedError(
                    f"collection {own!r} is at position {reached} here, and did not come to {position} in "
                    "time; try again in a moment, or ask the server that writes it"
                )
            await on_loop(asyncio.sleep(min(REACHING_SECONDS, left_seconds)))

    def _is_idle(self, name: str) -> bool:
        return Collection.named(self.root, name).is_idle()

    def position_of(self, given: Position, param: str) -> int:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        return whole_position(given, param)

    def writing(self, name: str, deadline: Deadline = NO_DEADLINE) -> AbstractContextManager[LiveCollection]:
        """The collection of this name, its own, opened to be written to and not closed meanwhile.

        deadline: of no use here, where no other server is waited for.
        Raises InvalidNameError, CollectionNotFoundError, CollectionBusyError where another process or a
        build writes it, DamagedIndexError, or StorageError.
        """
        return self._live.writing(name)

    def alone(self, name: str) -> AbstractContextManager[LiveCollection]:
        """The same once nobody else writes, and as long as the context lasts nobody does: they wait."""
        return self._live.alone(name)

    def flush(self, name: str) -> None:
        """Publishes what was written of a collection and is not published yet; by its own name.

        Raises as `writing` does, or OSError.
        """
        if self._live.get(name) is not None or Collection.named(self.root, name).has_unpublished():
            with self._live.writing(name) as live:
                live.flush()

    async def open_to_write(self, name: str, deadline: Deadline = NO_DEADLINE) -> CollectionSettings:
        """Opens a collection to be written to, where it is not yet, and gives its settings.

        They have its own name, which an alias may mean no longer in a moment. deadline: as of `writing`.
        Raises as `writing` does.
        """
        settings = await self._look_to_write(name)
        return await self._open_to_write(settings) if isinstance(settings, str) else settings

    def open_written(self) -> None:
        """Opens what holds acknowledged writes that are not published yet, so that searches see them."""
        self._live.open_left()

    @property
    def search_threads(self) -> int:
        """Searches that run at a time: each computes."""
        return usable_cores()

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]:
        """How many collections are open for searches alone, and how many are written here."""
        return ("read", len(self._open_snapshots)), ("written", len(self._live))

    def describe(self, name: str) -> CollectionDescription:
        """Settings, defaults and state, without opening the snapshot.

        Of an alias of several collections, the settings that searches go by, and the defaults of the first.
        Raises CollectionNotFoundError, UnlikeCollectionsError or DamagedIndexError.
        """
        names = self.aliases.collections_of(name)
        if len(names) == 1:
            return self._describe(names[0])
        parts = [self._describe(own_name) for own_name in names]
        settings = united_settings(name, [part.settings for part in parts])
        published = [f"{part.settings.name}:{part.snapshot}" for part in parts if part.snapshot is not None]
        documents = sum(part.documents for part in parts)
        return CollectionDescription(
            settings, parts[0].defaults, ",".join(sorted(published)) or None, documents, names
        )

    def _describe(self, name: str) -> CollectionDescription:
        """Settings, defaults and state of one collection, by its own name."""
        collection = Collection.named(self.root, name)
        defaults, live = collection.defaults(), self._live.get(collection.settings.name)
        if live is not None:
            snapshot = live.snapshot()
            published = None if snapshot.name == EMPTY_NAME else snapshot.name
            return CollectionDescription(collection.settings, defaults, published, snapshot.documents)
        manifest = collection.manifest()
        if manifest is None:
            return CollectionDescription(collection.settings, defaults, None, 0)
        documents = sum(segment.documents_kept for segment in manifest.segments)
        return CollectionDescription(collection.settings, defaults, manifest.name, documents)

    def statistics(self, name: str) -> CollectionStatistics:
        """What a collection holds. Raises CollectionNotFoundError or DamagedIndexError."""
        collection = Collection.open(self.root, name)
        live = self._live.get(collection.settings.name)
        return published_statistics(collection) if live is None else live.statistics()

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]:
        """Counts of collections that can be read, by name, for metrics; only changed files are read."""
        for name in collection_folders(self.root):
            with suppress(SearchIndexError, OSError):
                live = self._live.get(name)
                yield name, self._counts.of(name) if live is None else live.counts()

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription:
        """An empty collection. Raises InvalidNameError or CollectionExistsError, and where there are remote
        ledgers as `writing`; then there is none.
        """
        made = Collection.create(self.root, name, settings)
        self.publish_new(made)
        return CollectionDescription(made.settings, None, None, 0)

    def publish_new(self, made: Collection) -> None:
        """Has a new collection outlast the disk, where there are remote ledgers. Raises as `writing`; then it
        is removed.
        """
        if self._has_remotes:
            try:
                with self._live.writing(made.settings.name):  # which publishes it
                    pass
            except BaseException:
                remove_folder(made.layout.folder)
                raise

    def delete(self, name: str) -> None:
        """Removes a collection and all it holds; searches and writes under way still finish.

        Raises CollectionNotFoundError, CollectionAliasedError where an alias means it, or
        CollectionBusyError while it is being built.
        """
        self.aliases.require_unnamed(name)  # before it is closed
        self._live.delete(name)
        self._forget(name)

    def store_defaults(self, name: str, defaults: SearchDefaults | None) -> None:
        """Has later searches of a collection, by its own name, use these where they say nothing else; None
        removes what is stored. A calibration that is stored stays with new ones.

        Raises CollectionNotFoundError or DamagedIndexError.
        """
        collection = Collection.named(self.root, name)
        if defaults is None:
            collection.remove_defaults()
            return
        former = collection.defaults()
        if former is not None:
            defaults = replace(defaults, confidence=former.confidence)
        collection.store_defaults(defaults)

    def names(self) -> list[str]:
        """The names of all collections, in order."""
        return list_collections(self.root)

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]:
        """The collections of these names that are there, by default all, in order of name."""
        descriptions = []
        for name in self.names() if names is None else names:
            try:
                descriptions.append(self.describe(name))
            except CollectionNotFoundError:
                continue  # deleted since the folder was listed
            except DamagedIndexError as error:
                log.error("collection %s is left out of the list: %s", name, error)
        return descriptions

    def checkpoints(self) -> dict[str, str]:
        """The checkpoints that collections were built with, where known, by their encoders' names."""
        return self._files.checkpoints()

    def release_superseded(self) -> None:
        """Lets go of snapshots that are current no more: another process removed or rebuilt the collection.

        A search would notice that, but none may come; meanwhile the files would keep their room on the disk.
        """
        for name in self._open_snapshots.names():
            if self._live.get(name) is not None or self._open_snapshots.current(name) is None:
                self._forget(name)
        self._live.release()
        self._united.release(self._parts)

    def close(self) -> None:
        """Lets go of every open snapshot, and closes what was written, which lasts."""
        self._opening_pool.close()
        self._renewing_pool.close()
        self.looking_pool.close()
        self._live.close()
        self._open_snapshots.clear()
        self._united.clear()

    def _looked(self, name: str, *, defaults: bool, effort: bool) -> SearchTarget[Snapshot] | ToOpen:
        """What a search needs, where the current snapshot is open."""
        names, parts = self.aliases.collections_of(name), []
        for own_name in names:
            snapshot, written = self._seen(own_name)
            if snapshot is None:
                return ToOpen(own_name if len(names) == 1 else name, names[0], written)
            parts.append(snapshot)
        if len(parts) == 1:
            return self._files.target(names[0], parts[0], defaults, effort)
        return self._files.target(names[0], self._united.of(name, parts), defaults, effort)

    def _seen(self, name: str) -> tuple[Snapshot | None, bool]:
        """The current snapshot of a collection where it is open, and whether it is written here."""
        live = self._live.get(name)
        return (self._open_snapshots.current(name), False) if live is None else (live.seen(), True)

    def _parts(self, alias: str) -> Sequence[Snapshot | None]:
        """The current snapshots of what an alias means, as far as they are open."""
        try:
            return [self._seen(name)[0] for name in self.aliases.collections_of(alias)]
        except SearchIndexError:
            return []

    def _looked_to_write(self, name: str) -> CollectionSettings | str:
        """The settings of a collection that is open to be written to, else its own name."""
        name = self.aliases.collection_of(name)
        live = self._live.get(name)
        return name if live is None else live.settings

    def _opened_to_write(self, name: str) -> CollectionSettings:
        with self._live.writing(name) as live:
            return live.settings

    def _note_counts(self, name: str) -> None:
        """Reads the counts of a closed collection now, so that the next scrape does not read them all."""
        with suppress(SearchIndexError, OSError):
            self._counts.of(name)

    def _forget(self, name: str) -> None:
        self._open_snapshots.forget(name)
        self._counts.forget(name)
        self._files.forget(name)
