"""Runs an application until a signal ends it."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from typing import Literal

import uvicorn
from fastapi import FastAPI

from tercet.models.workers import Workers
from tercet.service.http.hosts import ANY, names_of
from tercet.service.http.listening import address_of, is_loopback, listening_socket, url_of
from tercet.service.keys.key_file import KeyFile
from tercet.service.load.arenas import share_arenas
from tercet.service.load.open_files import allow_open_files, require_open_files
from tercet.service.runtime import Runtime
from tercet.service.settings.settings import Settings
from tercet.service.telemetry.logs import configure_logging
from tercet.service.wire.connections import ConnectionLimits, Connections, connections_of_files
from tercet.service.wire.protocol import HttpProtocol
from tercet.service.wire.server import DrainingServer

# Python's own 5 ms are long for an event loop that waits for its turn several times a request, behind threads
# that search and encode.
SWITCH_SECONDS = 0.001

# Threads that encode compute without Python's lock. Whoever holds it is to have the processor first, since
# all others wait for it: the event loop, with all requests and all refusals.
ENCODER_NICENESS = 5

log = logging.getLogger("tercet")


def run_server(app: FastAPI, settings: Settings) -> None:
    """Serves until a signal ends it, then finishes the requests that were accepted.

    Ends the process, too, where that happens before the encoder is loaded.

    Raises AddressError where the port cannot be had, TooManyFilesError where too few files may be open, and
    the ModelError for which the encoder could not be loaded.
    """
    runtime: Runtime = app.state.runtime
    writer = configure_logging(settings.log_level, _log_format(settings), runtime.telemetry.count_lost_lines)
    try:
        _run(app, settings)
    finally:
        writer.close()
    if runtime.abandoned:  # Python would wait for the thread that loads or fetches the encoder
        os._exit(0)
    if runtime.failure is not None:
        raise runtime.failure


def _log_format(settings: Settings) -> Literal["json", "text"]:
    return settings.log_format or ("text" if sys.stderr.isatty() else "json")


def _run(app: FastAPI, settings: Settings) -> None:
    """Serves until the end. Raises AddressError or TooManyFilesError."""
    if not settings.needs_key and not is_loopback(settings.host):
        log.warning(
            "listening on %s without a key: whoever reaches this address may read and change everything; "
            "set keys_file, api_keys_file or api_keys (TERCET_KEYS_FILE and so on)",
            settings.host,
        )
        if ANY in names_of(settings):
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
    Workers.niceness = ENCODER_NICENESS
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

        def listening() -> None:
            log.info("listening on %s", address_of(listener))
            runtime.listens_at(url_of(*listener.getsockname()[:2]))

        server.listening = listening
        server.run(sockets=[listener])


def _keep_what_is_loaded() -> None:
    """Takes all objects there are out of garbage collection.

    They stay until the end, and each full collection would look at every one, with the event loop stopped for
    a tenth of a second.
    """
    gc.collect()
    gc.freeze()


def server_for(app: FastAPI, settings: Settings) -> DrainingServer:
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
        app.state.entrance,
        app.state.records,
        app.state.marks,
    )
    runtime.telemetry.connections.set_function(lambda: len(connections.connections))
    runtime.telemetry.connections_allowed.set(connections.limits.connections)
    return server
