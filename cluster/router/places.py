"""Where a router's shards are: its setting names their servers, or the map of a build in shards that does."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.objects.opening import open_store
from cluster.shards.map import newest_map
from service.exceptions import SettingsError
from service.server_urls import SERVERS, servers_of_shards


def shard_servers(named: Sequence[str]) -> list[tuple[str, ...]]:
    """The servers of each shard, the one that takes its writes first, in order of the shards' numbers. named:
    these, or the URL of an object store below which there is a map.

    Raises SettingsError where there is no map or it does not say where a shard is, StoreAddressError,
    UnreachableStoreError, or DamagedObjectError.
    """
    if named[0].startswith(("http://", "https://")):
        return servers_of_shards(named)
    store = open_store(named[0])
    found = newest_map(store)
    if found is None:
        raise SettingsError(
            f"shards is {named[0]}, and there is no map below it: build one (tercet index build --shards N "
            "--output URL), or name the shards' servers"
        )
    servers = [SERVERS.join(shard.servers) for shard in found.shards if shard.servers]
    if len(servers) < len(found.shards):
        raise SettingsError(
            f"{store.url}/{found.path} does not say where all of its {len(found.shards)} shards are: build "
            "with --shard-urls, or name their servers"
        )
    try:
        return servers_of_shards(servers)
    except ValueError as error:
        raise SettingsError(f"{store.url}/{found.path}: {error}") from error
