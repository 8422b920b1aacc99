"""Gives a collection that was made through a router the map that a build in shards begins with."""

from __future__ import annotations

from collections.abc import Sequence

from tercet.cluster.objects.opening import open_store, require_creation
from tercet.cluster.resharding.errors import ServersError
from tercet.cluster.resharding.servers import Opening
from tercet.cluster.shards.map import ShardMap, ShardPlace, newest_map, publish_map
from tercet.cluster.shards.placement import Placement

ID_DIGITS = 8  # of the collection's id, in the names of the shards' folders


def map_collection(url: str, name: str, servers: Sequence[Sequence[str]], opened: Opening) -> ShardMap:
    """Has shards publish a collection below a URL, and names them in its first map. Writes go on meanwhile.

    servers: of each shard in order, the writing one first; each has this URL as its `snapshot_store`. A
    repeat changes nothing. Raises ServersError where these are not its shards, or the URL has the map of
    others; CollectionBusyError, ClusterError or ServiceError. Then there is no map.
    """
    store = open_store(url)
    require_creation(store)
    found = newest_map(store)
    if found is not None:
        if found.collection == name and [place.servers for place in found.shards] == list(servers):
            return found
        raise ServersError(
            f"{url} has a map already, of collection {found.collection!r}: give each collection a URL of its "
            "own, and move this one by tercet collection reshard without --map-of"
        )
    shards = opened([writing for writing, *_ in servers], name)
    parts = shards.parts()
    first = parts[0]
    has_buckets = first is not None and first.buckets is not None
    placement = Placement.evenly(len(servers)) if has_buckets else Placement(len(servers), None)
    if first is None or parts != [placement.part(first.collection, each) for each in range(len(servers))]:
        said = ", ".join("none" if part is None else f"{part.number} of {part.of}" for part in parts)
        raise ServersError(
            f"the servers have these parts of collection {name!r}: {said}; name all of its shards, in the "
            "order in which the router that made it has them"
        )
    folders = [f"shards/{first.collection[:ID_DIGITS]}-{number}" for number in range(len(servers))]
    shards.push(folders)
    return publish_map(store, name, list(map(ShardPlace.of_servers, folders, servers)), placement, None)
