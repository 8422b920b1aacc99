"""What each replica of Ray Serve holds: an encoder, or a router. None imports Ray by itself."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, Request

from tercet.cluster.ray.serving.handles import HandleTransport
from tercet.cluster.router.app import create_router_app
from tercet.index.files.scratch import process_scratch_folder
from tercet.models.errors import EncoderUnavailableError
from tercet.service.app import create_worker_app
from tercet.service.exceptions import NotReadyError
from tercet.service.load.arenas import share_arenas
from tercet.service.load.open_files import allow_open_files
from tercet.service.runtime import Runtime
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.logs import TextFormatter, json_formatter

LOOK_SECONDS = 0.1
QUEUED_TOKENS = "queued_tokens"  # what each encoder tells

Answer = tuple[int, dict[str, str], bytes]


class ByQueuedTokens:
    """A policy of Ray Serve's autoscaler: as many encoders as the tokens ask for that wait in all of them."""

    def __init__(self, replica_tokens: int) -> None:
        """replica_tokens: that may wait in one encoder before there is to be another."""
        self._replica_tokens = replica_tokens

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """The number of replicas, and no state. context: Ray Serve's `AutoscalingContext`, whose delays and
        bounds are applied to it.
        """
        queued: Mapping[Any, float] = context.aggregated_metrics.get(QUEUED_TOKENS, {})
        if not queued:  # none has said anything yet
            return context.target_num_replicas, {}
        return max(1, math.ceil(sum(queued.values()) / self._replica_tokens)), {}


class Replica:
    """An application whose replica is sound as long as the application is."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._runtime: Runtime = app.state.runtime
        self._begun = False

    async def check_health(self) -> None:
        """Returns at the first call once requests can be answered; raises why they cannot be, now or any
        more. Ray Serve asks at the start, and begins another replica where this raises.
        """
        while not self._begun:
            self._require_sound()
            try:
                await self._runtime.ready()
                self._begun = True
            except (NotReadyError, EncoderUnavailableError):
                await asyncio.sleep(LOOK_SECONDS)
        self._require_sound()

    def _require_sound(self) -> None:
        if self._runtime.failure is not None:
            raise self._runtime.failure


class Encoders(Replica):
    """An encoder worker, whose requests come through handles."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(create_worker_app(_prepared(settings)))
        self._open = AsyncExitStack()
        self._is_open = False
        self._transport = ASGITransport(self._app)

    async def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Status, headers with their names in lower case, and body. target: path with its query,
        percent-encoded.
        """
        request = Request(method, f"http://localhost{target}", headers=headers, content=body)
        answer = await self._transport.handle_async_request(request)
        return answer.status_code, dict(answer.headers), await answer.aread()

    def record_autoscaling_stats(self) -> dict[str, float]:
        """What `ByQueuedTokens` goes by: tokens that were accepted and are not encoded."""
        return {QUEUED_TOKENS: self._runtime.pending_tokens()}

    async def check_health(self) -> None:
        """As `Replica.check_health`; the first call opens everything."""
        if not self._is_open:
            self._is_open = True
            await self._open.enter_async_context(self._app.router.lifespan_context(self._app))
        await super().check_health()

    async def __del__(self) -> None:
        """Finishes what was accepted."""
        await self._open.aclose()


class Router(Replica):
    """The server that clients reach, before the shards."""

    def __init__(self, settings: Mapping[str, Any], encoders: Any) -> None:
        """encoders: their handle."""
        own = _prepared({**settings, "data": str(process_scratch_folder())})
        transport = HandleTransport(str(settings["encoder_urls"]), encoders)
        super().__init__(create_router_app(own, worker_transport=transport))

    def __serve_build_asgi_app__(self) -> FastAPI:
        """The application, which Ray Serve runs and serves."""
        return self._app


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
