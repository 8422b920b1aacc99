"""Health, readiness, metrics, and what this server is."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version

from fastapi import Response
from prometheus_client import CONTENT_TYPE_LATEST

from tercet.ingest.sources.formats import KINDS
from tercet.ingest.sources.packed import OPENERS
from tercet.service.routes.common import Allowed, Services, errors, json_response, router
from tercet.service.schemas.operations import InfoResponse, ReadyResponse, StatusResponse

open_routes = router("operations", 400, 403, 413, 422)
routes = router("operations", 400, 401, 403, 413, 422)


@open_routes.get("/health", response_model=StatusResponse)
async def health() -> Response:
    """Whether the process answers. Never needs a key."""
    return json_response({"status": "ok"})


@open_routes.get("/ready", response_model=ReadyResponse, responses=errors(503))
async def ready(services: Services) -> Response:
    """Whether the encoder is warm or a worker answers, and the data root can be read. Needs no key.

    `writes` says whether it can be written to, too; with the setting `ready_requires = "writes"` it must be.
    """
    writes = await services.ready()
    searches = {} if writes is None else {"reads": "ready", "writes": writes}
    return json_response({"status": "ready", **searches})


@routes.get("/info", response_model=InfoResponse, responses=errors(503))
async def info(services: Services) -> Response:
    """The version, the encoder, the limits of requests, and the kinds of files that imports read."""
    encoding, settings = services.encoding, services.settings
    return json_response(
        {
            "name": "tercet",
            "version": version("tercet"),
            "encoder": encoding.info.to_json(),
            "adapters": [asdict(adapter) for adapter in await encoding.adapters()],
            "encoding_settings": encoding.tokenizer.settings.to_json(),
            "limits": {
                "body_bytes": settings.max_body_bytes,
                **asdict(services.limits),
            },
            "files": {"kinds": list(map(asdict, KINDS.values())), "packings": list(OPENERS)},
        }
    )


@routes.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    },
)
async def metrics(services: Services, access: Allowed) -> Response:
    """Counters and timers in Prometheus' text format. They tell of all collections."""
    access.require_all("/metrics")
    content = await services.pools.metrics.run(services.telemetry.render)
    return Response(content, media_type=CONTENT_TYPE_LATEST)
