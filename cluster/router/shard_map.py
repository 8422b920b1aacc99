"""Where a router's shards are: its setting names their servers, or the map of a build in shards that does."""

from __future__ import annotations

from collections.abc import Sequence

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import ShardMap, newest_map
from tercet.service.exceptions import SettingsError
from tercet.service.settings.server_urls import SERVERS, servers_of_shards


def is_map(named: Sequence[str]) -> bool:
    """Whether a setting names an object store below which there is a map, and not the shards' servers."""
    return not named[0].startswith(("http://", "https://"))


def map_at(store: ObjectStore) -> ShardMap:
    """The newest map there. Raises SettingsError where there is none, UnreachableStoreError, or
    DamagedObjectError.
    """
    shard_map = newest_map(store)
    if shard_map is None:
        raise SettingsError(
            f"shards is {store.url}, and there is no map below it: build one (tercet collection build "
            "--shards N --output URL), or name the shards' servers"
        )
    return shard_map


def servers_of(store: ObjectStore, shard_map: ShardMap) -> list[tuple[str, ...]]:
    """The servers of each shard that a map names, the one that takes its writes first. Raises SettingsError
    where it does not say where one is, or names a server twice.
    """
    servers = [SERVERS.join(shard.servers) for shard in shard_map.shards if shard.servers]
    if len(servers) < len(shard_map.shards):
        raise SettingsError(
            f"{store.url}/{shard_map.path} does not say where all of its {len(shard_map.shards)} "
            "shards are: build with --shard-urls, or name their servers"
        )
    try:
        return servers_of_shards(servers)
    except ValueError as error:
        raise SettingsError(f"{store.url}/{shard_map.path}: {error}") from error
