"""Whether servers have the parts of a collection that a router looks for there.

A part tells its number and its collection since it was made over shards or built in them; one that was made
by hand, or by an older release, tells nothing, and is taken for what is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tercet.cluster.router.fan_out import DESCRIPTION, FanOut
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.refusals import lost_here
from tercet.service.exceptions import ShardFailedError
from tercet.service.shard.description import ShardDescription

SOON_SECONDS = 1.0  # in which a replica says what it has


class MisplacedShardError(ShardFailedError):
    """A server has another part of a collection than this one looks for there."""


def require_places(
    name: str, fan_out: FanOut, placement: Placement, described: Sequence[ShardDescription | None]
) -> None:
    """Raises MisplacedShardError, which says where the parts are, where a server has another one than that of
    its place, or ShardFailedError for one of another collection. described: by shard, None of one that said
    nothing.
    """
    parts = {
        (number, fan_out.describer_of(number)): each.settings.lineage.part
        for number, each in enumerate(described)
        if each is not None and each.settings.lineage is not None and each.settings.lineage.part is not None
    }
    shards = len(described)
    wrong = [
        server for (number, server), part in parts.items() if part != placement.part(part.collection, number)
    ]
    if wrong and all((part.number, part.of) == (number, shards) for (number, _), part in parts.items()):
        raise MisplacedShardError(
            f"server {wrong[0]} has other buckets of collection {name!r} than this server looks for there; "
            "give routers the map of its shards (setting shards, the URL of the map), or run the re-sharding "
            "again that did not end",
            wrong[0],
        )
    if wrong:
        places = ", ".join(
            f"{server} has shard {part.number} of {part.of}" for (_, server), part in parts.items()
        )
        raise MisplacedShardError(
            f"the shards of collection {name!r} are not where this server looks for them: {places}; here "
            f"there are {shards}, counted from 0: give each server (setting shards) where its shard is",
            wrong[0],
        )
    ids = {part.collection: server for (_, server), part in parts.items()}
    if len(ids) > 1:
        one, other, *_ = ids.values()
        raise ShardFailedError(
            f"servers {one} and {other} have parts of different collections that are both called {name!r}; "
            "give all servers of one of them (setting shards)",
            other,
        )


async def require_unlost(name: str, fan_out: FanOut, described: Sequence[ShardDescription | None]) -> None:
    """Raises ShardUnavailableError where the writing server of a shard has another collection of this name
    than a replica, as one that was made anew after the server lost its data.
    """

    def read(shard: int, body: bytes) -> ShardDescription:
        return ShardDescription.read(body, f"a replica of shard {shard}")

    replicas = await fan_out.ask_replicas(DESCRIPTION, read, SOON_SECONDS)
    for shard, replica in replicas.items():
        writer, followed = described[shard], replica.settings.lineage
        lineage = None if writer is None else writer.settings.lineage
        if lineage is not None and followed is not None and followed.id not in (lineage.id, *lineage.former):
            raise lost_here(name, fan_out.describer_of(shard))
