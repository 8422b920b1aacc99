"""The collections of a router, in the place of those that a server has itself: `CollectionRegistry`."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import ParamSpec, TypeVar

from tercet.cluster.router.aliases import ShardedAliases
from tercet.cluster.router.backups import ShardedBackups
from tercet.cluster.router.catalog import ShardedStatistics
from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.descriptions import described
from tercet.cluster.router.followed_map import FollowedMap
from tercet.cluster.router.partitions import shards_allowed
from tercet.cluster.router.shard_parts import MisplacedShardError
from tercet.cluster.router.shard_set import ShardSet
from tercet.cluster.router.snapshot import ShardedSnapshot
from tercet.cluster.router.view import View
from tercet.cluster.router.writer import ShardedWriter
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.positions import Positions
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.live.statistics import CollectionCounts
from tercet.service.collections.positions import Position
from tercet.service.collections.readable import CollectionDescription, SearchTarget
from tercet.service.collections.served import Served
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.admission import too_late
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading
from tercet.service.load.relay import on_loop
from tercet.service.remote.http import HttpConnections

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SEARCH_THREADS = 64  # they wait for shards rather than compute
LOOKING_THREADS = 4
FORGOTTEN_SECONDS = 3600.0
LOOKING_AGAIN_SECONDS = 0.1  # between two looks for a newer map that is waited for
SETTLING_SECONDS = 10.0  # for so long at most a search waits for shards to be what a newer map says
SETTLING_PAUSE_SECONDS = 0.02

log = logging.getLogger("tercet")


class ShardedCollections:
    """Collections over shards, by their names or aliases. Safe to use from several threads.

    Aliases are resolved here, so that a switch of one, which shards make one after the other, divides no
    request.
    """

    def __init__(
        self,
        fleet: Fleet,
        connections: HttpConnections | None = None,
        followed: FollowedMap | None = None,
        placement: Placement | None = None,
        version: int = 0,
    ) -> None:
        """connections: to the shards, if they are reached over HTTP; followed: the map that says
        which these are, where it may change; placement, version: of that map.
        """
        self._shards = ShardSet.of(fleet, placement, version)
        self._connections = connections
        self._followed = followed
        self._following: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()  # whether somebody waits for a newer map
        self._observer = ShardObserver()
        self.looking_pool = Pool("looking", LOOKING_THREADS)
        self.search_threads = SEARCH_THREADS
        self._map_pool = Pool("map", 1)

    @property
    def map_version(self) -> int:
        """That of the map that names the shards, 0 without one."""
        return self._shards.version

    @property
    def aliases(self) -> ShardedAliases:
        """Those of all shards."""
        return self._shards.aliases

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]:
        """How many collections are known."""
        return (("read", len(self._shards.known)),)

    @property
    def served(self) -> Served:
        """What a server answers from: these, and the backups of all shards."""
        backups = ShardedBackups(lambda: self._shards)
        return Served(self, self, backups, self, lacking=_building)

    async def start(self) -> None:
        """Takes the running event loop to ask shards from, and begins to follow the map."""
        self._shards.fleet.loop.take()
        if self._followed is not None:
            self._shards.expect_parts(self._wanted.set)
            self._following = asyncio.create_task(self._follow(self._followed), name="map")

    async def stop(self) -> None:
        """Follows no more, and ends the connections to the shards."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._connections is not None:
            await self._connections.close()

    def observe(self, observer: ShardObserver) -> None:
        """Tells how the servers of shards fare from now on."""
        self._observer = observer
        for shard in self._shards.fleet.servers:
            shard.observe(observer)

    async def open(self, name: str, options: Reading = ANY_TIME) -> ShardedSnapshot:
        """A collection as one request sees it. Raises as `open_with_defaults`."""
        return (await self.open_with_defaults(name, options)).snapshot

    async def open_with_defaults(
        self, name: str, options: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[ShardedSnapshot]:
        """The same, with what is stored for searches; options: until when, and with which answers.

        What is known of the collection may be old: what a shard is asked then says so. Where shards have
        other documents by now than this router knows of, it waits for the map that says so. Raises what
        asking shards raises, ShardFailedError where they do not agree on what the collection is.
        """
        shards = self._shards
        if shards.left.is_set():
            shards = await on_loop(self._newer_than(shards, options.deadline))
        try:
            return await self._target(shards, name, options, defaults, effort)
        except MisplacedShardError:
            newer = await on_loop(self._newer_than(shards, options.deadline))
            if newer is shards:
                raise
            return await self._target(newer, name, options, defaults, effort)

    async def open_to_write(self, name: str, deadline: Deadline = NO_DEADLINE) -> CollectionSettings:
        """The settings of a collection, with its own name. Raises SeveralCollectionsError, too.

        A shard that is lost keeps nobody from writing to others.
        """

        def written() -> CollectionSettings:
            shards = self._shards
            own = shards.aliases.collection_of(name, deadline)
            return _written(shards, own, deadline).description.settings

        return await self._look(deadline, written)

    def writing(self, name: str, deadline: Deadline = NO_DEADLINE) -> AbstractContextManager[ShardedWriter]:
        """The collection of this name, its own, to be written to. deadline: for the answers of shards."""

        def newest() -> tuple[ShardSet, KnownCollection]:
            shards = self._shards
            return shards, shards.known.get(name) or _written(shards, name, deadline)

        def look() -> None:
            self._shards.fleet.loop.call(self._wanted.set)

        return nullcontext(ShardedWriter(newest, deadline, None if self._followed is None else look))

    def position_of(self, given: Position, param: str) -> Positions:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        return self._shards.positions.position_of(given, param)

    async def reach(self, name: str, position: Positions, deadline: Deadline) -> None:
        """Waits until shards have what was written up to a position: see `Reaching.reach`."""
        shards = self._shards
        own = await self._look(deadline, shards.aliases.collection_of, name, deadline)
        await shards.positions.reach(own, position, deadline)

    def names(self) -> list[str]:
        """Of all collections, in order."""
        return self._shards.catalog.names()

    def describe(self, name: str) -> CollectionDescription:
        """Settings, defaults and state of a collection: see `ShardedCatalog.describe`."""
        return self._shards.catalog.describe(name)

    def statistics(self, name: str) -> ShardedStatistics:
        """What all shards hold of a collection."""
        return self._shards.catalog.statistics(name)

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]:
        """None: shards tell of their own."""
        return iter(())

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription:
        """An empty collection on all shards: see `ShardedCatalog.create`."""
        shards = self._shards
        shards.known.pop(name, None)
        return shards.catalog.create(name, settings)

    def delete(self, name: str) -> None:
        """Removes a collection from all shards: see `ShardedCatalog.delete`."""
        shards = self._shards
        try:
            shards.catalog.delete(name)
        finally:
            shards.known.pop(name, None)

    def store_defaults(self, name: str, defaults: SearchDefaults | None) -> None:
        """Stores defaults of searches in all shards: see `ShardedCatalog.store_defaults`."""
        shards = self._shards
        try:
            shards.catalog.store_defaults(name, defaults)
        finally:
            shards.known.pop(name, None)

    def checkpoints(self) -> dict[str, str]:
        """What opens the encoders of the collections that are known, where it is known."""
        described = [known.description.settings for known in tuple(self._shards.known.values())]
        return {each.encoder: each.checkpoint for each in described if each.checkpoint is not None}

    def open_written(self) -> None:
        """Nothing is written here."""

    def release_superseded(self) -> None:
        """Forgets what was described long ago, so that what is no more takes no memory."""
        for name, known in tuple(self._shards.known.items()):
            if known.age_seconds > FORGOTTEN_SECONDS:
                self._shards.known.pop(name, None)

    def close(self) -> None:
        """Ends its threads."""
        self.looking_pool.close()
        self._map_pool.close()

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]:
        """The collections of these names that are there, by default all, in order of name."""
        return self._shards.catalog.list(names)

    async def _look(
        self,
        deadline: Deadline,
        look: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """What a look-up gives, in a thread for them. Raises DeadlineExceededError where none was free in
        time.
        """
        return await self.looking_pool.run_in_time(
            deadline, partial(too_late, 0), None, look, *args, **options
        )

    async def _follow(self, followed: FollowedMap) -> None:
        """For ever: requests that begin later go to the shards of the newest map whose shards answer."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), followed.pause_seconds)
            self._wanted.clear()
            try:
                taken = await self._map_pool.run(followed.newer, self._shards)
                if taken.fleet is not self._shards.fleet:
                    taken.expect_parts(self._wanted.set)
                    for shard in taken.fleet.servers:
                        shard.observe(self._observer)
                self._shards = taken
            except Exception:  # whatever it is: the shards that are known serve on, and the next look may do
                log.exception("a look for a newer map of shards failed")
            await asyncio.sleep(min(followed.pause_seconds, LOOKING_AGAIN_SECONDS))

    async def _newer_than(self, shards: ShardSet, deadline: Deadline) -> ShardSet:
        """The shards of a newer map, once they are known; these where that takes too long."""
        until = min(deadline.moment, time.monotonic() + SETTLING_SECONDS)
        while self._followed is not None and self._shards is shards and time.monotonic() < until:
            shards.fleet.loop.call(self._wanted.set)
            await asyncio.sleep(SETTLING_PAUSE_SECONDS)
        shards.left.clear()
        return self._shards

    async def _target(
        self, shards: ShardSet, name: str, how: Reading, defaults: bool, effort: bool
    ) -> SearchTarget[ShardedSnapshot]:
        """What a search over these shards needs."""
        names = shards.aliases.known(name)
        if names is None:
            names = await self._look(how.deadline, shards.aliases.collections_of, name, how.deadline)
        known, fan_out = await described(shards, names[0] if len(names) == 1 else name, how)
        description = known.description
        allowed = shards_allowed(how.filter, description.settings, shards.placement)
        view = View(known, fan_out, allowed)
        if how.snapshot is not None:
            await on_loop(view.find(how.snapshot))

        def read_from(some: ShardSet) -> Fleet:
            return some.fleet if how.newest else some.fleet.reading(how.deadline)

        def newer() -> tuple[Fleet, Placement] | None:
            later = shards.fleet.loop.run(self._newer_than(shards, how.deadline))
            return None if later is shards else (read_from(later), later.placement)

        return SearchTarget(
            ShardedSnapshot(
                view,
                read_from(shards),
                shards.placement,
                how.deadline,
                several=len(names) > 1,
                newer=newer,
                within=how.filter,
            ),
            description.defaults if defaults else None,
            description.effort if effort else None,
        )


def _building(_what: str) -> InvalidRequestError:
    """What is raised for the one thing that routers do not offer."""
    return InvalidRequestError(
        "this server has its collections divided over shards, and builds none: put the documents, or "
        "build them with tercet collection build --shards",
        None,
        "unsupported",
    )


def _written(shards: ShardSet, name: str, deadline: Deadline) -> KnownCollection:
    """What is known of a collection to be written, by its own name, from the shards that answer."""
    return shards.fleet.loop.run(described(shards, name, Reading(deadline, allow_partial=True)))[0]
