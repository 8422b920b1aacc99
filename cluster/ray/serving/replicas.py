"""What each replica of Ray Serve holds: an encoder, a shard, or a router. None imports Ray by itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from tercet.cluster.ray.serving.autoscaling import QUEUED_TOKENS
from tercet.cluster.ray.serving.handles import ENCODERS_URL, HandleTransport
from tercet.cluster.ray.serving.in_process import Answer, InProcess, require_sound, until_ready
from tercet.cluster.router.app import create_router_app
from tercet.cluster.shards.placement import Placement
from tercet.cluster.snapshots.following import Follower
from tercet.index.files.scratch import process_scratch_folder
from tercet.service.app import create_app, create_worker_app
from tercet.service.load.arenas import share_arenas
from tercet.service.load.open_files import allow_open_files
from tercet.service.runtime import Runtime
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.logs import TextFormatter, json_formatter


class Encoders:
    """An encoder worker, whose requests come through handles."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._app = InProcess(create_worker_app(_prepared(settings)))

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `InProcess.answer`."""
        return await self._app.answer(method, target, headers, body)

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What Ray Serve's autoscaler goes by: tokens that were accepted and are not encoded."""
        return {QUEUED_TOKENS: self._app.runtime.pending_tokens()}

    async def check_health(self) -> None:
        """As `InProcess.check`; Ray Serve asks at the start, and begins another where this raises."""
        await self._app.check()

    async def __del__(self) -> None:
        """Finishes what was accepted."""
        await self._app.stop()


class Shard:
    """A search server of a data root, or one that follows snapshots, whose requests come through handles."""

    def __init__(self, settings: Mapping[str, Any], encoders: Any) -> None:
        """encoders: their handle."""
        own = {} if "data" in settings else {"data": str(process_scratch_folder())}
        found = _prepared({**settings, **own})
        following = None if found.follow is None else Follower(found.follow, found.data)
        self._app = InProcess(
            create_app(found, following=following, worker_transport=HandleTransport(ENCODERS_URL, encoders))
        )

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """As `InProcess.answer`."""
        return await self._app.answer(method, target, headers, body)

    async def check_health(self) -> None:
        """As `InProcess.check`."""
        await self._app.check()

    async def __del__(self) -> None:
        """Finishes what was accepted, and lets another have the data root."""
        await self._app.stop()


class Router:
    """The server that clients reach, before the shards."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        encoders: Any,
        shards: Sequence[tuple[str, Any]],
        placement: Placement | None,
    ) -> None:
        """shards: names and handles in the order of their numbers; none where the settings name servers.
        placement: of the map that names them, if one does.
        """
        self._placement = placement
        self._settings = settings
        self._encoders = encoders
        self._shards = shards
        self._begun = False

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The application, which Ray Serve runs and serves."""
        settings = _prepared({**self._settings, "data": str(process_scratch_folder())})
        transports = [HandleTransport(name, handle) for name, handle in self._shards]
        app = create_router_app(
            settings,
            transports=transports,
            worker_transport=HandleTransport(ENCODERS_URL, self._encoders),
            placement=self._placement,
        )
        self._runtime: Runtime = app.state.runtime
        return app

    async def check_health(self) -> None:
        """Waits at the start until requests can be answered; raises why they cannot be, now or any more."""
        if not self._begun:
            await until_ready(self._runtime)
            self._begun = True
        require_sound(self._runtime)


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
