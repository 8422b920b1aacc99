"""Where a router's shards are: its setting names their servers, or the map of a build in shards that does."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.objects.opening import open_store
from cluster.shards.map import newest_map
from service.exceptions import SettingsError


def shard_urls(named: Sequence[str]) -> Sequence[str]:
    """The shards' servers in order of their numbers. named: these, or the URL of an object store below which
    there is a map.

    Raises SettingsError where there is no map or it does not say where a shard is, StoreAddressError,
    UnreachableStoreError, or DamagedObjectError.
    """
    if named[0].startswith(("http://", "https://")):
        return named
    store = open_store(named[0])
    found = newest_map(store)
    if found is None:
        raise SettingsError(
            f"shards is {named[0]}, and there is no map below it: build one (tercet index build --shards N "
            "--output URL), or name the shards' servers"
        )
    urls = [shard.url for shard in found.shards if shard.url is not None]
    if len(urls) < len(found.shards):
        raise SettingsError(
            f"{store.url}/{found.path} does not say where all of its {len(found.shards)} shards are: build "
            "with --shard-urls, or name their servers"
        )
    return [url.rstrip("/") for url in urls]
