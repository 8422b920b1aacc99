"""Moves a collection to other shards while it is searched and written, from servers to servers.

Servers that have a shard already go on with it, and give or get buckets. Most is copied while writes go on.
For the last of it the present shards refuse writes, durably, for the version of the map that is to come;
routers hold these until they know the map. Whoever publishes that version decides: the move, or who gives it
up by naming the same shards once more. So no write is acknowledged by a shard after it was copied for the
last time. Then the servers settle: each is what the map says of it, and takes writes again. Routers take the
map up once all are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.resharding.errors import ServersError
from tercet.cluster.resharding.reshard import Resharding, ReshardProgress, ReshardReport, required_map
from tercet.cluster.resharding.servers import MapServers, Opening
from tercet.cluster.shards.map import ShardMap, newest_map, publish_map
from tercet.cluster.work.executor import Executor
from tercet.index.errors import SearchIndexError
from tercet.index.wording import failure_text
from tercet.service.exceptions import ServiceError

MOST_PASSES = 5  # over what was written meanwhile, before writes are held
SHORT_SECONDS = 5.0  # after a pass of less than this, what is left takes as little


def reshard_live(
    url: str,
    executor: Executor,
    servers: Sequence[Sequence[str]],
    opened: Opening,
    *,
    progress: Callable[[ReshardProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> ReshardReport:
    """Has a collection lie on these servers, and the map name them.

    servers: of each shard in order, the writing one first; those that have a present shard keep what stays in
    it. say: is told of each step. A call after one that was killed goes on; one after its end changes
    nothing. Raises ServersError, and as `reshard`; then the present shards take writes as before, unless they
    could not be told: `give_up` tells them.
    """
    store, former = required_map(url)
    if [place.servers for place in former.shards] == list(map(tuple, servers)):
        present_servers = opened(_named(store, former), former.collection)
        present_servers.settle(former)  # where a former call did not end
        folders = [place.snapshots for place in former.shards]
        documents = [each.documents for each in present_servers.push(folders)]
        return ReshardReport(former.collection, former, tuple(folders), tuple(documents), 0, 0)
    present, next = _named(store, former), [writing for writing, *_ in servers]
    goes_on = [present.index(url) if url in present else None for url in next]
    _require_new(former, servers, goes_on)
    name, version = former.collection, former.version + 1
    old = opened(present, name)
    new = opened([url for url, each in zip(next, goes_on, strict=True) if each is None], name)
    _require_alone(old.collections(), name, "the present shards also have")
    _require_alone(new.collections(), name, "the new servers have")
    _require_parts(old, former, goes_on)
    move = Resharding(store, former, goes_on, executor, progress)
    steps = _Steps(move, former, old, new, opened(next, name), version, say)
    steps.copy()
    try:
        held_seconds = steps.move(servers)
    except (Exception, KeyboardInterrupt) as error:
        _let_write(store, former, opened, error, say)
        raise
    steps.publish_settled()
    move.finish()
    return replace(move.report, held_seconds=held_seconds)


def give_up(store: ObjectStore, opened: Opening) -> ShardMap:
    """Names the present shards once more, so that a move which is under way cannot end, and has them take
    writes again, as what the map says of them. Raises ClusterError or ServiceError; a repeat goes on.
    """
    present = newest_map(store)
    assert present is not None  # noqa: S101 - whoever calls has read it
    claimed = publish_map(store, present.collection, present.shards, present.placement, present)
    opened(_named(store, claimed), claimed.collection).settle(claimed)
    return claimed


@dataclass(frozen=True, slots=True)
class _Steps:
    """One move between servers."""

    _move: Resharding
    _former: ShardMap
    _old: MapServers
    _new: MapServers
    _all: MapServers
    _version: int
    _say: Callable[[str], None]

    def copy(self) -> None:
        """Copies what there is until little is left, while writes go on."""
        for _ in range(MOST_PASSES):
            began = time.monotonic()
            self._say("The present shards publish what they have, and it is divided...")
            self._publish()
            self._say("The shards that it goes to fetch it...")
            self._fetch()
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
        self._all.settle(self._move.switch(servers))
        return time.monotonic() - began

    def publish_settled(self) -> None:
        """Has all publish what they have now, so that what is on the store is what the map says."""
        self._all.push(self._move.report.folders)

    def _publish(self) -> list[int]:
        """Has the present shards publish, and brings the new folders up to that; the positions of these."""
        pushed = self._old.push([place.snapshots for place in self._former.shards])
        self._move.catch_up()
        return [each.position for each in pushed]

    def _fetch(self) -> dict[int, int]:
        """Has new servers bring what was divided, and others receive it; the documents of each."""
        brought = self._new.bring(list(self._move.new.values()), self._version)
        found = {number: each.documents for number, each in zip(self._move.new, brought, strict=True)}
        received = self._all.receive(self._move.received)
        return found | {number: each.documents for number, each in enumerate(received) if each is not None}

    def _require_whole(self) -> None:
        """The servers have all that was divided. Raises ServersError."""
        fetched, coming = self._fetch(), self._move.coming
        documents = [fetched.get(number, 0) for number in range(len(coming))]
        if documents != list(coming):
            raise ServersError(
                f"the shards have fetched {documents} documents, and {list(coming)} were divided; are new "
                "servers empty, and is the snapshot_store of all the URL of this collection?"
            )


def _require_new(former: ShardMap, servers: Sequence[Sequence[str]], goes_on: Sequence[int | None]) -> None:
    """Raises ServersError where a server of a new shard has a present one."""
    present = {url for place in former.shards for url in place.servers}
    both = sorted(
        present & {url for shard, each in zip(servers, goes_on, strict=True) if each is None for url in shard}
    )
    if both:
        raise ServersError(
            f"{both[0]} has a present shard, or follows one, so it cannot have a new one; give another server"
        )


def _require_parts(old: MapServers, former: ShardMap, goes_on: Sequence[int | None]) -> None:
    """Raises ServersError where servers have not the parts that the map says. One of an older release may
    tell nothing, where it does not go on.
    """
    for number, part in enumerate(old.parts()):
        if part is None and number not in goes_on:
            continue
        if part is None or part != former.placement.part(part.collection, number):
            raise ServersError(
                f"shard {number} is not the part of the collection that version {former.version} of the map "
                "says: run the command again that published the map, with its servers; or give servers that "
                "are new, where an older release made the collection"
            )


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
