"""What a router knows of one set of shards, which a newer map replaces by another as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event

from tercet.cluster.router.aliases import ShardedAliases
from tercet.cluster.router.catalog import ShardedCatalog
from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.positions import KnownPositions
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.servers import ShardServers


@dataclass(frozen=True, slots=True)
class ShardSet:
    """version: of the map that names the shards, 0 without one; known: collections by their names; left: is
    set once a shard said that it has other documents by now, as a newer map says. A request goes on with the
    set that it began with.
    """

    fleet: Fleet
    placement: Placement
    version: int
    aliases: ShardedAliases
    catalog: ShardedCatalog
    positions: KnownPositions
    known: dict[str, KnownCollection] = field(default_factory=dict)
    left: Event = field(default_factory=Event)

    @staticmethod
    def of(fleet: Fleet, placement: Placement | None = None, version: int = 0) -> ShardSet:
        """One of which nothing is known yet. placement: of the map; without one that of a new collection."""
        positions, aliases = KnownPositions(fleet), ShardedAliases(fleet)
        placement = placement or Placement.evenly(len(fleet))
        catalog = ShardedCatalog(fleet, placement, aliases, positions)
        return ShardSet(fleet, placement, version, aliases, catalog, positions)

    def expect_parts(self, outdated: Callable[[], None]) -> None:
        """Has all servers told from now on which part of a collection they are taken for. outdated: is told,
        on the event loop, when one has another by now.
        """

        def refused(shard: ShardServers, server: int) -> None:
            if server == shard.writer:  # which replicas follow
                self.left.set()
                outdated()

        for number, shard in enumerate(self.fleet.servers):
            tag = self.placement.part("", number).tag
            for server, client in enumerate(shard.clients):
                client.expect_part(tag, partial(refused, shard, server))
