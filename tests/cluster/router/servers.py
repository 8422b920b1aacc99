"""Servers and routers that tests start, and what they ask of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import httpx

from tercet.cluster.router.app import create_router_app
from tercet.cluster.router.collections import ShardedCollections
from tercet.cluster.shards.calls import Loop
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.placement import Placement
from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.remote.http import HttpConnections, HttpTransport
from tercet.service.settings.settings import Settings
from tests.service.conftest import real_server

DEMO = "/collections/demo"
DOCUMENTS = f"{DEMO}/documents"
COLLECTION = {
    "fields": {"year": "integer", "kind": "keyword", "seen": "datetime", "new": "boolean", "price": "number"}
}
CLIENT = httpx.Client(timeout=60)
WORDS = ["tea", "train", "water", "rail", "green", "steam", "leaf", "black"]


class Servers:
    """Shards and routers of one test, each with a folder of its own."""

    def __init__(self, root: Path, encoder: Encoder) -> None:
        self._root = root
        self._encoder = encoder
        self._stack = ExitStack()
        self._running: dict[str, AbstractContextManager[str]] = {}

    def start(self, name: str, port: int = 0, encoder: Encoder | None = None, **settings: Any) -> str:
        """The URL of a server of this name, which has what it had before; with `shards` a router."""
        create = create_router_app if "shards" in settings else create_app
        app = create(Settings(data=self._root / name, port=0, **settings), encoder or self._encoder)
        return self._enter(name, real_server(app, port))

    def start_router(self, name: str, wrap: Callable[[HttpTransport], Any], *urls: str) -> str:
        """A router whose ways to its shards are wrapped."""
        connections = HttpConnections()
        clients = [[ShardClient(wrap(HttpTransport(url, connections)))] for url in urls]
        served = ShardedCollections(Fleet(clients, Loop()), connections).served
        app = create_app(Settings(data=self._root / name, port=0), self._encoder, served=served)
        return self._enter(name, real_server(app))

    def stop(self, name: str) -> None:
        """Ends a server."""
        self._running.pop(name).__exit__(None, None, None)

    def close(self) -> None:
        """Ends all."""
        for name in list(self._running):
            self.stop(name)

    def over(self, shards: int, name: str = "router", **settings: Any) -> tuple[str, list[str]]:
        """A router over so many new shards, with an empty collection; its URL, and those of the shards."""
        urls = [self.start(f"{name}-{number}") for number in range(shards)]
        url = self.start(name, shards=",".join(urls), **settings)
        assert CLIENT.put(f"{url}{DEMO}", json=COLLECTION).status_code == 201
        return url, urls

    def _enter(self, name: str, server: AbstractContextManager[str]) -> str:
        url = server.__enter__()
        self._running[name] = server
        return url


def put(url: str, ids: list[str] | str, **options: Any) -> httpx.Response:
    documents = [{"id": id, "text": f"green tea {id}"} for id in ([ids] if isinstance(ids, str) else ids)]
    return CLIENT.put(f"{url}{DOCUMENTS}", json={"documents": documents, **options})


def count(url: str) -> int:
    found: int = CLIENT.post(f"{url}{DOCUMENTS}/count").json()["count"]
    return found


def error_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def ids_in(shard: int, shards: int, number: int = 1) -> list[str]:
    """Some ids that belong to a shard."""
    found = (f"d{each}" for each in range(10_000) if Placement.evenly(shards).shard_of(f"d{each}") == shard)
    return [next(found) for _ in range(number)]
