"""Moves a collection to other shards while it is searched and written, from servers to servers.

Most is copied while writes go on. For the last of it the present shards refuse writes, durably, for the
version of the map that is to come; routers hold these until they know the map. Whoever publishes that version
decides: the move, or who gives it up by naming the same shards once more, and lets them write again. So no
write is acknowledged by a shard after it was copied for the last time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.resharding.errors import ServersError
from tercet.cluster.resharding.reshard import Resharding, ReshardProgress, ReshardReport, required_map
from tercet.cluster.resharding.servers import MapServers, Opening
from tercet.cluster.shards.map import ShardMap, newest_map, publish_map
from tercet.cluster.snapshots.published import required_snapshot
from tercet.cluster.work.executor import Executor
from tercet.index.errors import SearchIndexError
from tercet.index.wording import failure_text
from tercet.service.exceptions import ServiceError

MOST_PASSES = 5  # over what was written meanwhile, before writes are held
SHORT_SECONDS = 5.0  # after a pass of less than this, what is left takes as little


def reshard_live(
    url: str,
    shards: int,
    executor: Executor,
    servers: Sequence[Sequence[str]],
    opened: Opening,
    *,
    progress: Callable[[ReshardProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> ReshardReport:
    """Brings so many new servers up to what the present ones have, and has the map name them.

    servers: of each new shard in order, the writing one first. say: is told of each step. A call after one
    that was killed goes on; one after its end changes nothing. Raises ServersError, and as `reshard`; then
    the present shards take writes as before, unless they could not be told: `give_up` tells them.
    """
    store, former = required_map(url)
    if [place.servers for place in former.shards] == list(map(tuple, servers)):
        folders = tuple(place.snapshots for place in former.shards)
        documents = tuple(required_snapshot(store.below(folder)).manifest.documents for folder in folders)
        return ReshardReport(former.collection, former, folders, documents, 0, 0)
    present = _present(store, former, servers)
    name, version = former.collection, former.version + 1
    old, new = opened(present, name), opened([writing for writing, *_ in servers], name)
    _require_alone(old.collections(), name, "the present shards also have")
    _require_alone(new.collections(), name, "the new servers have")
    move = Resharding(store, former, shards, executor, progress)
    steps = _Steps(move, former, old, new, version, say)
    steps.copy()
    try:
        held_seconds = steps.move(servers)
    except (Exception, KeyboardInterrupt) as error:
        _let_write(store, former, opened, error, say)
        raise
    move.finish()
    return replace(move.report, held_seconds=held_seconds)


def give_up(store: ObjectStore, opened: Opening) -> ShardMap:
    """Names the present shards once more, so that a move which is under way cannot end, and has them take
    writes again. Raises ClusterError or ServiceError; a repeat goes on.
    """
    present = newest_map(store)
    assert present is not None  # noqa: S101 - whoever calls has read it
    claimed = publish_map(store, present.collection, present.shards, present)
    opened(_named(store, claimed), claimed.collection).lift(claimed.version)
    return claimed


class _Steps:
    """One move between servers."""

    def __init__(
        self,
        move: Resharding,
        former: ShardMap,
        old: MapServers,
        new: MapServers,
        version: int,
        say: Callable[[str], None],
    ) -> None:
        self._move = move
        self._former = former
        self._old = old
        self._new = new
        self._version = version
        self._say = say

    def copy(self) -> None:
        """Copies what there is until little is left, while writes go on."""
        for _ in range(MOST_PASSES):
            began = time.monotonic()
            self._say("The present shards publish what they have, and it is divided...")
            self._publish()
            self._say("The new shards fetch it...")
            self._new.bring(self._move.folders, self._version)
            if time.monotonic() < began + SHORT_SECONDS:
                break

    def move(self, servers: Sequence[Sequence[str]]) -> float:
        """Copies the rest while writes are held, and switches; for how many seconds they were."""
        self._say("Writes are held...")
        began = time.monotonic()
        positions = self._old.fence(self._version)
        pushed = self._publish()
        behind = [shard for shard, least in enumerate(positions) if pushed[shard] < least]
        if behind:
            raise ServersError(
                f"shard {behind[0]} published position {pushed[behind[0]]}, and its last write has "
                f"{positions[behind[0]]}; is its snapshot_store the URL of this collection?"
            )
        self._require_whole()
        self._new.keep(self._version)
        for alias, collections in self._old.aliases().items():
            if collections == [self._former.collection]:
                self._new.put_alias(alias, collections)
        self._move.switch(servers)
        return time.monotonic() - began

    def _publish(self) -> list[int]:
        """Has the present shards publish, and brings the new folders up to that; the positions of these."""
        pushed = self._old.push([place.snapshots for place in self._former.shards])
        self._move.catch_up()
        return [each.position for each in pushed]

    def _require_whole(self) -> None:
        """The new servers have all that was divided. Raises ServersError."""
        brought = self._new.bring(self._move.folders, self._version)
        documents = [each.documents for each in brought]
        if documents != list(self._move.report.documents):
            raise ServersError(
                f"the new shards have {documents} documents, and {list(self._move.report.documents)} were "
                "divided; are their servers empty, and their snapshot_store the URL of this collection?"
            )


def _present(store: ObjectStore, former: ShardMap, servers: Sequence[Sequence[str]]) -> list[str]:
    """The present shards' writing servers. Raises ServersError where these cannot move to the new ones."""
    present = _named(store, former)
    both = sorted(
        {url for place in former.shards for url in place.servers}
        & {url for shard in servers for url in shard}
    )
    if both:
        raise ServersError(f"{both[0]} has a present shard, so it cannot have a new one; give another server")
    return present


def _named(store: ObjectStore, found: ShardMap) -> list[str]:
    urls = [place.url for place in found.shards if place.url is not None]
    if len(urls) < len(found.shards):
        raise ServersError(
            f"{store.url}/{found.path} does not say where all of its {len(found.shards)} shards are, so "
            "writes cannot go on: stop them, and re-shard without --live"
        )
    return [url.rstrip("/") for url in urls]


def _require_alone(found: set[str], name: str, who: str) -> None:
    """Routers lose sight of what stays in servers that the map names no more."""
    others = sorted(found - {name})
    if others:
        raise ServersError(
            f"{who} collection {others[0]!r}; the servers of a map have its collection {name!r} alone"
        )


def _let_write(
    store: ObjectStore,
    former: ShardMap,
    opened: Opening,
    failure: BaseException,
    say: Callable[[str], None],
) -> None:
    """Gives the move up after a failure, unless the version to come is there: then that decides."""
    try:
        found = newest_map(store)
        if found is None or found.version == former.version:
            say("It failed, so the present shards take writes again...")
            give_up(store, opened)
    except (ClusterError, ServiceError, SearchIndexError, OSError) as error:
        raise ServersError(
            f"{failure}; and the present shards could not be told to take writes again "
            f"({failure_text(error)}): run the same command again, or tercet collection reshard {store.url} "
            "--abort"
        ) from failure
