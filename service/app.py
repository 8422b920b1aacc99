"""Builds the applications: search server and encoder worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Unpack

from fastapi import APIRouter, FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.staticfiles import StaticFiles

from tercet.models.encoder import Encoder
from tercet.service.compat import dify, models, tei_tokens
from tercet.service.compat import embed as compatible_embed
from tercet.service.compat import rerank as compatible_rerank
from tercet.service.description import Description
from tercet.service.edge.bodies import BodyLimits
from tercet.service.edge.cross_origin import CrossOrigin
from tercet.service.edge.edge import Edge, EdgeOptions
from tercet.service.edge.entrance import Entrance
from tercet.service.edge.ledger import ClientLimits, Ledger
from tercet.service.edge.marks import Marks
from tercet.service.edge.records import Records
from tercet.service.errors import install_error_handlers
from tercet.service.exceptions import SettingsError
from tercet.service.gauges import watch
from tercet.service.http.hosts import AllowedHosts, names_of
from tercet.service.keys.key_file import KeyFile
from tercet.service.load.pools import Pool
from tercet.service.page import description
from tercet.service.page import routes as page
from tercet.service.requests.direct import DirectRoutes
from tercet.service.requests.keys import KeyRing, keys_of, other_collections
from tercet.service.routes import (
    aliases,
    backups,
    collections,
    defaults,
    document_writes,
    documents,
    embed,
    imports,
    jobs,
    operations,
    rerank,
    search,
    shard,
    shard_collections,
    shard_moves,
    upkeep,
    worker,
)
from tercet.service.runtime import Runtime
from tercet.service.runtime_parts import RuntimeParts
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.audit import AuditLog
from tercet.service.telemetry.metrics import Telemetry
from tercet.service.tracing.tracing import Tracing

TAGS = [
    {"name": "embed", "description": "Texts to dense, sparse and ColBERT representations."},
    {"name": "search", "description": "Queries to hits, each with its three scores."},
    {"name": "rerank", "description": "Texts ordered by three-way scores with a query."},
    {"name": "collections", "description": "What can be searched."},
    {"name": "documents", "description": "Documents of a collection, written and read at any time."},
    {"name": "aliases", "description": "Second names of collections, switched in one step."},
    {"name": "backups", "description": "Copies of collections as they were, to be restored."},
    {"name": "jobs", "description": "Batch index builds."},
    {"name": "operations", "description": "Health, readiness, metrics."},
    {"name": "openai", "description": "Routes that OpenAI's clients call."},
    {"name": "tei", "description": "Routes that clients of Text Embeddings Inference call."},
    {"name": "cohere", "description": "Routes that Cohere's clients call."},
    {"name": "jina", "description": "Routes that Jina's clients call."},
    {"name": "ollama", "description": "Routes that Ollama's clients call."},
    {"name": "dify", "description": "The route that Dify's external knowledge calls."},
    {"name": "worker", "description": "What encoder workers serve to search servers."},
]

SERVER_ROUTES = [
    embed.routes,
    search.routes,
    rerank.routes,
    collections.routes,
    defaults.routes,
    documents.routes,
    document_writes.routes,
    imports.routes,
    upkeep.routes,
    aliases.routes,
    backups.routes,
    shard_collections.routes,
    shard_moves.routes,
    jobs.routes,
    shard.routes,
    operations.routes,
    operations.open_routes,
    *compatible_embed.routes,
    *compatible_rerank.routes,
    *models.routes,
    tei_tokens.routes,
    dify.routes,
    page.routes,
    description.routes,
]
WORKER_ROUTES = [embed.routes, worker.routes, operations.routes, operations.open_routes, description.routes]


def create_app(settings: Settings, encoder: Encoder | None = None, **parts: Unpack[RuntimeParts]) -> FastAPI:
    """The search server: all routes. encoder: one that is loaded already, instead of the settings' own.

    Raises SettingsError where a part is missing that a setting asks for.
    """
    for name, part in (
        ("follow", "following"),
        ("snapshot_store", "moving"),
        ("publish_url", "publishing"),
        ("ledger_url", "ledgers"),
    ):
        if getattr(settings, name) is not None and parts.get(part) is None:
            raise SettingsError(
                f"setting {name} (TERCET_{name.upper()}) is for the command tercet serve; unset it"
            )
    app = _build(
        settings,
        Runtime(
            settings,
            Telemetry(),
            searches=True,
            encoder=encoder,
            tracing=_tracing(settings, "tercet"),
            **parts,
        ),
        SERVER_ROUTES,
    )
    app.mount(page.FILES, page.PageFiles())
    return app


def create_worker_app(settings: Settings, encoder: Encoder | None = None) -> FastAPI:
    """The encoder worker: `/embed`, `/tokenizer` and operations."""
    tracing = _tracing(settings, "tercet-encoder")
    return _build(
        settings,
        Runtime(settings, Telemetry(), searches=False, encoder=encoder, tracing=tracing),
        WORKER_ROUTES,
    )


def _build(settings: Settings, runtime: Runtime, routers: Sequence[APIRouter]) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await runtime.start()
        try:
            async with _watched(key_file, keys, runtime.pools.operations):
                yield
        finally:
            await runtime.stop()
            audit.close()

    app = FastAPI(
        title="Tercet",
        version=version("tercet"),
        description="Hybrid retrieval: dense, sparse and ColBERT from one encoder pass, and their exact sum "
        "for every hit. Every error has the shape of `ErrorResponse`.",
        openapi_tags=TAGS,
        lifespan=lifespan,
        servers=[{"url": settings.root_path}] if settings.root_path else None,
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # Metrics and logs are ours; to ask for OpenTelemetry at each request costs a sixth of the framework.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.runtime = runtime
    Description(app, needs_key=settings.needs_key)
    app.mount("/docs/static", StaticFiles(packages=[("fastapi_offline", "static")]))
    routes = [route for router in routers for route in router.routes]
    app.router.routes.extend(routes)
    root_path = settings.root_path or ""
    taken = {route.path.split("/")[1] for route in routes if isinstance(route, APIRoute)}
    if root_path and root_path.split("/")[1] in taken:
        raise SettingsError(
            f"root_path {root_path} begins as a route of the server does; take another, such as /tercet"
        )
    answer = install_error_handlers(app, routes, runtime.telemetry.count_refusal, other_collections)
    key_file = None if settings.keys_file is None else KeyFile(settings.keys_file)
    keys = KeyRing(keys_of(settings), None if key_file is None else key_file.keys)
    app.state.key_file = key_file
    ledger = Ledger(
        ClientLimits(
            settings.max_concurrent_requests,
            settings.max_bodies_bytes,
            settings.key_requests_per_second,
            settings.max_key_requests,
            settings.key_bytes_per_second,
        )
    )
    audit = AuditLog(
        settings.audit,
        settings.audit_file,
        runtime.telemetry.count_audit_failures,
        required=settings.audit_required,
    )
    app.state.audit = audit
    app.state.records = Records(runtime.telemetry, routes, runtime.tracing, audit)
    cross_origin = CrossOrigin(settings.cors_origins)
    app.state.marks = Marks(cross_origin)
    hosts = AllowedHosts(names_of(settings))
    app.state.entrance = Entrance(keys, hosts, cross_origin, runtime.gate, ledger, root_path)
    # The framework's outer layers would answer what is a bug, bound bodies and trace, as the edge does.
    inner = ExceptionMiddleware(AsyncExitStackMiddleware(app.router), handlers=app.exception_handlers)
    app.middleware_stack = Edge(
        inner,
        EdgeOptions(
            entrance=app.state.entrance,
            marks=app.state.marks,
            bodies=BodyLimits(settings.max_body_bytes, settings.body_timeout_seconds),
            records=app.state.records,
            telemetry=runtime.telemetry,
            direct=DirectRoutes(routes, relayed={search.search, *shard.OPERATIONS.values()}),
            answer=answer,
            codings=runtime.pools.codings,
            compression=settings.compression,
        ),
    )
    watch(runtime, key_file, ledger)
    if runtime.served.shards is not None:
        runtime.served.shards.observe(runtime.telemetry.shards)
    return app


@asynccontextmanager
async def _watched(file: KeyFile | None, keys: KeyRing, pool: Pool) -> AsyncIterator[None]:
    """Meanwhile what changes in the file of keys is taken up."""
    watch = None if file is None else asyncio.create_task(file.watch(keys.take_up, pool), name="keys")
    try:
        yield
    finally:
        if watch is not None:
            watch.cancel()


def _tracing(settings: Settings, service: str) -> Tracing:
    """Where spans go. Raises SettingsError where what sends them is not installed."""
    if settings.trace_endpoint is None:
        return Tracing()
    try:
        from tercet.service.tracing.export import exported
    except ImportError as error:
        raise SettingsError(
            f"trace_endpoint needs the extra otel ({error}): pip install -c constraints.txt -e '.[otel]'"
        ) from None
    return exported(settings.trace_endpoint, settings.trace_sampling, service)
