"""The router's application: that of a server, whose collections are those of shards."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI

from tercet.cluster.objects.opening import open_store
from tercet.cluster.router.collections import ShardedCollections
from tercet.cluster.router.followed_map import FollowedMap
from tercet.cluster.router.shard_map import is_map
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardAccess
from tercet.cluster.shards.fleet import Fleet
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.remote.transport import Transport
from tercet.service.settings.server_urls import servers_of_shards
from tercet.service.settings.settings import Settings


def create_router_app(
    settings: Settings,
    encoder: Encoder | None = None,
    worker_transport: Transport | None = None,
) -> FastAPI:
    """The server before its shards.

    encoder: one that is loaded already; worker_transport: how encoder workers are reached, by default by
    HTTP.
    """
    served = collections_of(settings).served
    return create_app(settings, encoder, served=served, worker_transport=worker_transport)


def collections_of(settings: Settings) -> ShardedCollections:
    """The collections of the shards that settings name, by connections that all sets of them share."""
    loop, access = Loop(), ShardAccess.of(settings)
    connections = access.connections()

    def fleet_of(servers: Sequence[Sequence[str]]) -> Fleet:
        return Fleet([[access.client(url, connections) for url in shard] for shard in servers], loop)

    if not is_map(settings.shards):
        return ShardedCollections(fleet_of(servers_of_shards(settings.shards)), connections)
    followed = FollowedMap(open_store(settings.shards[0]), settings.follow_seconds, fleet_of)
    fleet, shards = followed.first()
    return ShardedCollections(fleet, connections, followed, shards.placement, shards.version)
