"""What each replica of Ray Serve holds: an encoder, a shard, or a router. None imports Ray by itself."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from cluster.ray.serving.autoscaling import QUEUED_TOKENS
from cluster.ray.serving.handles import HandleTransport, HandleWorkers
from cluster.ray.serving.in_process import Answer, InProcess, until_ready
from cluster.router.collections import ShardedCollections
from cluster.shards.calls import Loop
from cluster.shards.client import ShardClient
from cluster.shards.fleet import Fleet
from cluster.shards.transport import ShardAccess
from cluster.snapshots.following import Follower
from service.app import create_app, create_worker_app
from service.arenas import share_arenas
from service.logs import TextFormatter, json_formatter
from service.open_files import allow_open_files
from service.runtime import Runtime
from service.settings import Settings


class Encoders:
    """An encoder worker, whose requests come through handles."""

    async def __init__(self, settings: Mapping[str, Any]) -> None:  # noqa: D107
        self._app = InProcess(create_worker_app(_prepared(settings)))
        await self._app.start()

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `InProcess.answer`."""
        return await self._app.answer(method, target, headers, body)

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What Ray Serve's autoscaler goes by: tokens that were accepted and are not encoded."""
        return {QUEUED_TOKENS: self._app.runtime.pending_tokens()}

    def check_health(self) -> None:
        """Raises why it can encode nothing any more; Ray Serve then begins another."""
        _require_sound(self._app)

    async def __del__(self) -> None:
        """Finishes what was accepted."""
        await self._app.stop()


class Shard:
    """A search server of its own data root, or one that follows snapshots, whose requests come through handles."""

    async def __init__(self, settings: Mapping[str, Any], encoders: Any) -> None:  # noqa: D107
        found = _prepared(settings)
        following = None if found.follow is None else Follower(found.follow, found.data)
        self._app = InProcess(
            create_app(found, following=following, worker_transport=HandleWorkers(encoders))
        )
        await self._app.start()

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `InProcess.answer`."""
        return await self._app.answer(method, target, headers, body)

    def check_health(self) -> None:
        """Raises why it can answer nothing any more."""
        _require_sound(self._app)

    async def __del__(self) -> None:
        """Finishes what was accepted, and lets another have the data root."""
        await self._app.stop()


class Router:
    """The server that clients reach, before the shards."""

    def __init__(self, settings: Mapping[str, Any], encoders: Any, shards: Sequence[tuple[str, Any]]) -> None:
        """shards: names and handles in the order of their numbers; none where the settings name servers."""
        self._settings = settings
        self._encoders = encoders
        self._shards = shards

    def __serve_build_asgi_app__(self) -> FastAPI:  # noqa: PLW3201 - the name is Ray Serve's
        """The application, which Ray Serve runs and serves."""
        settings = _prepared({**self._settings, "data": tempfile.mkdtemp(prefix="tercet-router-")})
        access = ShardAccess(timeout_seconds=settings.shards_timeout_seconds)
        clients = [ShardClient(HandleTransport(name, handle, access)) for name, handle in self._shards]
        served = ShardedCollections(Fleet(clients, Loop())).served
        app = create_app(settings, served=served, worker_transport=HandleWorkers(self._encoders))
        self._runtime: Runtime = app.state.runtime
        return app

    async def check_health(self) -> None:
        """Waits until requests can be answered; raises why they cannot be any more."""
        await until_ready(self._runtime)


def _prepared(settings: Mapping[str, Any]) -> Settings:
    """The settings, once this process is set up as that of an ordinary server."""
    found = Settings(**settings)
    handler = logging.StreamHandler()
    handler.setFormatter(json_formatter() if found.log_format == "json" else TextFormatter())
    log = logging.getLogger("tercet")
    log.handlers, log.propagate = [handler], False  # Ray has the root's
    log.setLevel(found.log_level.upper())
    allow_open_files()
    share_arenas()
    return found


def _require_sound(app: InProcess) -> None:
    if app.runtime.failure is not None:
        raise app.runtime.failure
