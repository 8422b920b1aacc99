"""What a router knows of one set of shards, which a newer map replaces by another as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field

from tercet.cluster.router.aliases import ShardedAliases
from tercet.cluster.router.catalog import ShardedCatalog
from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.position_waits import PositionWaits
from tercet.cluster.router.positions import KnownPositions
from tercet.cluster.shards.fleet import Fleet


@dataclass(frozen=True, slots=True)
class ShardSet:
    """version: of the map that names the shards, 0 without one; known: collections by their names. A request
    goes on with the set that it began with.
    """

    fleet: Fleet
    version: int
    aliases: ShardedAliases
    catalog: ShardedCatalog
    positions: KnownPositions
    position_waits: PositionWaits
    known: dict[str, KnownCollection] = field(default_factory=dict)

    @staticmethod
    def of(fleet: Fleet, version: int = 0) -> ShardSet:
        """One of which nothing is known yet."""
        positions, aliases = KnownPositions(len(fleet)), ShardedAliases(fleet)
        catalog = ShardedCatalog(fleet, aliases, positions)
        return ShardSet(fleet, version, aliases, catalog, positions, PositionWaits(fleet, positions))
