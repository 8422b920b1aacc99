"""The router's application: that of a server, whose collections are those of shards."""

from __future__ import annotations

from fastapi import FastAPI

from cluster.router.collections import ShardedCollections
from cluster.shards.calls import Loop
from cluster.shards.client import ShardClient
from cluster.shards.fleet import Fleet
from cluster.shards.http_transport import HttpSession, HttpTransport
from cluster.shards.transport import ShardAccess
from models.encoder import Encoder
from service.app import create_app
from service.settings import Settings


def create_router_app(settings: Settings, encoder: Encoder | None = None) -> FastAPI:
    """The server before the shards of the settings. encoder: one that is loaded already."""
    key = settings.shards_key
    session = HttpSession(
        ShardAccess(
            None if key is None else key.get_secret_value(), timeout_seconds=settings.shards_timeout_seconds
        )
    )
    clients = [ShardClient(HttpTransport(url, session)) for url in settings.shards]
    return create_app(settings, encoder, ShardedCollections(Fleet(clients, Loop()), session).served)
