"""The collections of a router, in the place of those that a server has itself: `CollectionRegistry`."""

from __future__ import annotations

import threading

from cluster.router.asking import Asking
from cluster.router.collection import KnownCollection, View
from cluster.router.snapshot import ShardedSnapshot
from cluster.shards.fleet import Fleet
from service.collections import SearchTarget
from service.exceptions import ShardFailedError
from service.load.pools import Pool
from service.load.reading import ANY_TIME, Reading
from service.shard.description import ShardDescription, description_of
from service.shard.messages import Message, message

SEARCH_THREADS = 64  # they wait for shards rather than compute
LOOKING_THREADS = 4


class ShardedCollections:
    """Collections over shards, by their names or aliases. Safe to use from several threads."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[str, KnownCollection] = {}
        self._describing = threading.Lock()
        self.looking_pool = Pool("looking", LOOKING_THREADS)
        self.search_threads = SEARCH_THREADS

    async def start(self) -> None:
        """Takes the running event loop to ask shards from."""
        self._fleet.loop.take()

    async def open(self, name: str, how: Reading = ANY_TIME) -> ShardedSnapshot:
        """A collection as one request sees it. Raises as `open_with_defaults`."""
        return (await self.open_with_defaults(name, how)).snapshot

    async def open_with_defaults(
        self, name: str, how: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[ShardedSnapshot]:
        """The same, with what is stored for searches; how: until when, and with which answers.

        What is known of the collection may be old: what a shard is asked then says so. Raises what asking
        shards raises, ShardFailedError where they do not agree on what the collection is.
        """
        asking = Asking(self._fleet, name, how)
        known = self._known.get(name)
        if known is None or known.is_stale:
            known = await self.looking_pool.run(self._described, name, asking)
        description = known.description
        return SearchTarget(
            ShardedSnapshot(View(known, asking)),
            description.defaults if defaults else None,
            description.effort if effort else None,
        )

    def _described(self, name: str, asking: Asking) -> KnownCollection:
        """The collection as all shards describe it."""

        def read(shard: int, found: Message) -> ShardDescription:
            return description_of(found, asking.name_of(shard))

        told = asking.ask("description", [message({}, {})] * len(asking), read)
        heard = [(shard, each) for shard, each in enumerate(told) if each is not None]
        (first, description), *others = heard
        for shard, other in others:
            if other.settings != description.settings:
                raise ShardFailedError(
                    f"shards {asking.name_of(first)} and {asking.name_of(shard)} have different settings of "
                    f"collection {name!r}; create it anew on all of them",
                    asking.name_of(shard),
                )
        tags = [None if each is None else each.tag for each in told]
        known = KnownCollection(name, description, tags, is_stale=None in tags)
        with self._describing:
            former = self._known.get(name)
            if former is not None and former.description.settings == description.settings:
                known.terms = former.terms
            self._known[name] = known
        return known
