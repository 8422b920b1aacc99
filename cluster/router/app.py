"""The router's application: that of a server, whose collections are those of shards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import FastAPI

from cluster.router.collections import ShardedCollections
from cluster.router.places import shard_servers
from cluster.shards.calls import Loop
from cluster.shards.client import ShardClient
from cluster.shards.fleet import Fleet
from cluster.shards.http_transport import HttpSession, HttpTransport
from cluster.shards.transport import ShardAccess, Transport
from models.encoder import Encoder
from service.app import create_app
from service.settings import Settings

if TYPE_CHECKING:
    import httpx


def create_router_app(
    settings: Settings,
    encoder: Encoder | None = None,
    transports: Sequence[Transport] = (),
    worker_transport: httpx.AsyncBaseTransport | None = None,
) -> FastAPI:
    """The server before its shards.

    encoder: one that is loaded already; transports: the ways to the shards, by default HTTP to those of the
    settings; worker_transport: how encoder workers are reached, by default by HTTP.
    """
    session = None
    replicas: list[list[ShardClient]] = []
    if not transports:
        key = settings.shards_key
        session = HttpSession(
            ShardAccess(
                None if key is None else key.get_secret_value(),
                timeout_seconds=settings.shards_timeout_seconds,
            )
        )
        shards = shard_servers(settings.shards)
        transports = [HttpTransport(url, session) for url, *_ in shards]
        replicas = [[ShardClient(HttpTransport(url, session)) for url in others] for _, *others in shards]
    fleet = Fleet([ShardClient(transport) for transport in transports], Loop(), replicas)
    served = ShardedCollections(fleet, session).served
    return create_app(settings, encoder, served=served, worker_transport=worker_transport)
