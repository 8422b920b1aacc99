"""Builds the applications, search server and encoder worker, and runs them."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

import uvicorn
from fastapi import APIRouter, FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.staticfiles import StaticFiles

from models.encoder import Encoder
from service.arenas import share_arenas
from service.audit import AuditLog
from service.compat import cohere, dify, jina, ollama, openai, tei
from service.description import Description
from service.errors import install_error_handlers
from service.exceptions import SettingsError
from service.following import Following
from service.http.direct import DirectRoutes
from service.http.edge.bodies import BodyBudget, BodyLimits
from service.http.edge.cross_origin import CrossOrigin
from service.http.edge.edge import Edge, EdgeOptions
from service.http.edge.key_limits import KeyBook, KeyLimits
from service.http.edge.keys import KeyRing, keys_of
from service.http.edge.marks import Marks
from service.http.edge.places import Places
from service.http.edge.records import Records
from service.http.hosts import ANY, AllowedHosts
from service.http.wire.connections import ConnectionLimits, Connections, connections_of_files
from service.http.wire.listening import address_of, is_loopback, listening_socket
from service.http.wire.protocol import HttpProtocol
from service.http.wire.server import DrainingServer
from service.key_file import KeyFile
from service.load.pools import Pool
from service.logs import configure_logging
from service.moving import Moving
from service.open_files import allow_open_files, require_open_files
from service.page import description
from service.page import routes as page
from service.publishing import Publishing
from service.routes import (
    aliases,
    backups,
    collections,
    document_writes,
    documents,
    embed,
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
from service.runtime import Runtime
from service.served_collections import Served
from service.settings import Settings
from service.telemetry import Telemetry, threads
from service.tracing.tracing import Tracing

if TYPE_CHECKING:
    import httpx

# Python's own 5 ms are long for an event loop that waits for its turn several times a request, behind threads
# that search and encode.
SWITCH_SECONDS = 0.001

log = logging.getLogger("tercet")

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


def create_app(
    settings: Settings,
    encoder: Encoder | None = None,
    *,
    served: Served | None = None,
    following: Following | None = None,
    moving: Moving | None = None,
    publishing: Publishing | None = None,
    worker_transport: httpx.AsyncBaseTransport | None = None,
) -> FastAPI:
    """The search server: all routes.

    encoder: one that is loaded already, instead of the settings' own; served: collections that others have,
    instead of those of the data root; following: what brings collections from elsewhere, where the setting
    `follow` asks for it; moving: what copies collections, where `snapshot_store` asks for it; publishing:
    what publishes them, where `publish_url` asks for it; worker_transport: how encoder workers are reached,
    by default by HTTP.
    Raises SettingsError where one of these is missing.
    """
    for name, given in (("follow", following), ("snapshot_store", moving), ("publish_url", publishing)):
        if getattr(settings, name) is not None and given is None:
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
            served=served,
            following=following,
            moving=moving,
            publishing=publishing,
            worker_transport=worker_transport,
        ),
        [
            embed.routes,
            search.routes,
            rerank.routes,
            collections.routes,
            documents.routes,
            document_writes.routes,
            upkeep.routes,
            aliases.routes,
            backups.routes,
            shard_collections.routes,
            shard_moves.routes,
            jobs.routes,
            shard.routes,
            operations.routes,
            operations.open_routes,
            openai.routes,
            tei.routes,
            tei.open_routes,
            cohere.routes,
            jina.routes,
            ollama.routes,
            dify.routes,
            page.routes,
            description.routes,
        ],
    )
    app.mount(page.FILES, page.PageFiles())
    return app


def create_worker_app(settings: Settings, encoder: Encoder | None = None) -> FastAPI:
    """The encoder worker: `/embed`, `/tokenizer` and operations."""
    tracing = _tracing(settings, "tercet-encoder")
    return _build(
        settings,
        Runtime(settings, Telemetry(), searches=False, encoder=encoder, tracing=tracing),
        [embed.routes, worker.routes, operations.routes, operations.open_routes, description.routes],
    )


def run_server(app: FastAPI, settings: Settings) -> None:
    """Serves until a signal ends it, then finishes the requests that were accepted.

    Ends the process, too, where that happens before the encoder is loaded.

    Raises AddressError where the port cannot be had, TooManyFilesError where too few files may be open, and
    the ModelError for which the encoder could not be loaded.
    """
    runtime: Runtime = app.state.runtime
    writer = configure_logging(settings.log_level, settings.log_format, runtime.telemetry.count_lost_lines)
    try:
        _run(app, settings)
    finally:
        writer.close()
    if runtime.abandoned:  # Python would wait for the thread that loads or fetches the encoder
        os._exit(0)
    if runtime.failure is not None:
        raise runtime.failure


def _run(app: FastAPI, settings: Settings) -> None:
    """Serves until the end. Raises AddressError or TooManyFilesError."""
    if not settings.needs_key and not is_loopback(settings.host):
        log.warning(
            "listening on %s without a key: whoever reaches this address may read and change everything; "
            "set keys_file, api_keys_file or api_keys (TERCET_KEYS_FILE and so on)",
            settings.host,
        )
        if ANY in _names_of(settings):
            log.warning(
                "listening on %s for any name: a page elsewhere may reach this server through a name of its "
                "own; set allowed_hosts (TERCET_ALLOWED_HOSTS) to the names that it has",
                settings.host,
            )
    if not settings.needs_key and ANY in settings.cors_origins:
        log.warning(
            "without a key, and open to pages of any origin: whoever has one open in a browser that reaches "
            "this server lets it read and change everything; set cors_origins to the origins of your pages"
        )
    allow_open_files()
    require_open_files()
    share_arenas()
    sys.setswitchinterval(SWITCH_SECONDS)
    runtime: Runtime = app.state.runtime
    server = server_for(app, settings)

    def stop() -> None:
        server.should_exit = True

    runtime.failed = stop
    runtime.opened = _keep_what_is_loaded
    if threading.current_thread() is threading.main_thread():
        # Uvicorn takes it while it serves, and repeats it after its end; being told to end is no failure.
        signal.signal(signal.SIGTERM, lambda *_: stop())
        key_file: KeyFile | None = app.state.key_file
        if key_file is not None:
            signal.signal(signal.SIGHUP, lambda *_: key_file.ask())
        elif signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # a terminal was closed; nohup has it ignored
            signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    with listening_socket(settings.host, settings.port) as listener:
        log.info("listening on %s", address_of(listener))
        server.run(sockets=[listener])


def _keep_what_is_loaded() -> None:
    """Takes all objects there are out of garbage collection.

    They stay until the end, and each full collection would look at every one, with the event loop stopped for
    a tenth of a second.
    """
    gc.collect()
    gc.freeze()


def server_for(app: FastAPI, settings: Settings) -> uvicorn.Server:
    """The HTTP server of an application, not yet started."""
    runtime: Runtime = app.state.runtime
    server = DrainingServer(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            http=HttpProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nothing here asks for the address of a client
            server_header=False,
            timeout_keep_alive=settings.idle_timeout_seconds,
            timeout_graceful_shutdown=settings.shutdown_seconds,
        ),
        settings.drain_seconds,
        runtime.drain,
    )
    connections = server.server_state = Connections(
        ConnectionLimits(
            connections=settings.max_connections or connections_of_files(),
            head_seconds=settings.head_timeout_seconds,
            write_seconds=settings.write_timeout_seconds,
        ),
        runtime.gate,
        app.state.records,
        app.state.marks,
    )
    runtime.telemetry.connections.set_function(lambda: len(connections.connections))
    runtime.telemetry.connections_allowed.set(connections.limits.connections)
    return server


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
    answer = install_error_handlers(app, routes, runtime.telemetry.count_refusal)
    key_file = None if settings.keys_file is None else KeyFile(settings.keys_file)
    keys = KeyRing(keys_of(settings), None if key_file is None else key_file.keys)
    app.state.key_file = key_file
    budget = BodyBudget(settings.max_bodies_bytes)
    audit = AuditLog(
        settings.audit,
        settings.audit_file,
        runtime.telemetry.count_audit_failures,
        required=settings.audit_required,
    )
    app.state.audit = audit
    app.state.records = Records(
        runtime.telemetry,
        routes,
        runtime.tracing,
        audit,
    )
    cross_origin = CrossOrigin(settings.cors_origins)
    app.state.marks = Marks(cross_origin)
    # The framework's outer layers would answer what is a bug, bound bodies and trace, as the edge does.
    inner = ExceptionMiddleware(AsyncExitStackMiddleware(app.router), handlers=app.exception_handlers)
    app.middleware_stack = Edge(
        inner,
        EdgeOptions(
            keys=keys,
            hosts=AllowedHosts(_names_of(settings)),
            cross_origin=cross_origin,
            marks=app.state.marks,
            places=Places(settings.max_concurrent_requests),
            bodies=BodyLimits(settings.max_body_bytes, settings.body_timeout_seconds),
            budget=budget,
            key_limits=KeyBook(
                KeyLimits(
                    settings.key_requests_per_second,
                    settings.max_key_requests,
                    settings.key_bytes_per_second,
                )
            ),
            records=app.state.records,
            telemetry=runtime.telemetry,
            direct=DirectRoutes(routes, relayed={search.search, *shard.OPERATIONS.values()}),
            answer=answer,
            codings=runtime.pools.codings,
            compression=settings.compression,
        ),
    )
    _watch(runtime)
    runtime.collections.observe(runtime.telemetry.shards)
    runtime.telemetry.watch_number(
        "tercet_keys_file_sound",
        "0: the file of keys is broken, and those of before are in use.",
        lambda: key_file is None or key_file.sound,
    )
    runtime.telemetry.watch_number(
        "tercet_bodies_bytes", "Bytes of bodies that are arriving or in work.", lambda: budget.bytes
    )
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
        from service.tracing.export import exported
    except ImportError as error:
        raise SettingsError(
            f"trace_endpoint needs the extra otel ({error}): pip install -c constraints.txt -e '.[otel]'"
        ) from None
    return exported(settings.trace_endpoint, settings.trace_sampling, service)


def _names_of(settings: Settings) -> Sequence[str]:
    """Who listens for other machines cannot know by which names they reach it."""
    if settings.allowed_hosts:
        return settings.allowed_hosts
    return [settings.host] if is_loopback(settings.host) else [ANY]


def _watch(runtime: Runtime) -> None:
    telemetry = runtime.telemetry
    telemetry.watch_number("tercet_queue_tokens", "Tokens accepted, not yet encoded.", runtime.pending_tokens)
    telemetry.watch(
        "tercet_encoder_queue_tokens", "The same of each open encoder.", "model", runtime.encoder_queues
    )
    cache = runtime.query_cache
    telemetry.watch_counts(
        "tercet_query_cache_lookups",
        "Queries that were asked of the cache of encoded queries.",
        "result",
        lambda: [("hit", cache.hits), ("miss", cache.misses)],
    )
    telemetry.watch_number("tercet_query_cache_bytes", "Memory of that cache.", lambda: cache.size_bytes)
    telemetry.watch(
        "tercet_followed_snapshot_age_seconds",
        "Since the snapshot of a followed collection was published.",
        "collection",
        runtime.followed_ages,
    )
    telemetry.watch_number(
        "tercet_follow_silence_seconds",
        "Since it was last known that nothing newer is published.",
        runtime.follow_silence,
    )
    telemetry.watch(
        "tercet_publish_silence_seconds",
        "Since all that was written of a collection was last known to be published.",
        "collection",
        runtime.publish_silences,
    )
    telemetry.watch_counts(
        "tercet_publish_failures",
        "Attempts to publish a collection that failed.",
        "collection",
        runtime.publish_failures,
    )
    telemetry.watch_number(
        "tercet_requests_let_in", "Requests whose answers have not begun.", lambda: runtime.gate.in_work
    )
    telemetry.watch(
        "tercet_predicted_wait_seconds", "Wait of a request that came now.", "kind", runtime.predicted_waits
    )
    telemetry.writes.watch(runtime.collections.all_statistics)
    telemetry.watch("tercet_jobs", "Index-build jobs.", "state", runtime.job_counts)
    telemetry.watch("tercet_encoder_worker_up", "Workers in use.", "url", runtime.worker_states)
    telemetry.watch(
        "tercet_encoder_worker_in_flight", "Requests that wait for a worker.", "url", runtime.worker_loads
    )
    telemetry.watch("tercet_ready", "What /ready says: reads, writes.", "operation", runtime.readiness)
    telemetry.watch("tercet_open_collections", "Open collections.", "kind", runtime.open_collections)
    telemetry.watch("tercet_backup_age_seconds", "Since the last backup.", "collection", runtime.backup_ages)
    telemetry.watch_number("tercet_shard_map_version", "Of the map of shards in use.", runtime.map_version)
    telemetry.watch_number("tercet_data_free_bytes", "Of the data root's disk.", runtime.free_bytes)
    telemetry.watch_number("tercet_threads", "Threads of the process.", threads)
