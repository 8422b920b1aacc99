"""Servers over the tiny encoder and the small collection."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from tercet.models.encoder import Encoder
from tercet.service.app import create_app
from tercet.service.load.pools import Pool
from tercet.service.serving import server_for
from tercet.service.settings.settings import Settings
from tests.ports import held_port
from tests.service.polling import REST_SECONDS, pause
from tests.service.raw_connections import Connect, RawClient

PATIENCE_SECONDS = 150  # for a server that begins or ends

StartServer = Callable[..., tuple[subprocess.Popen[str], httpx.Client]]


@asynccontextmanager
async def serving(app: FastAPI, headers: dict[str, str] | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that runs in this event loop and is ready."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=False),
            base_url="http://localhost",
            headers=headers,
        ) as client,
    ):
        while (await client.get("/ready")).status_code != 200:
            await pause()
        yield client


@contextmanager
def real_server(app: FastAPI, port: int = 0, shutdown_seconds: int = 5) -> Iterator[str]:
    """The address of an application behind a real server, by default on a free port, in a thread."""
    settings: Settings = app.state.runtime.settings
    server = server_for(app, settings.model_copy(update={"port": port, "shutdown_seconds": shutdown_seconds}))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(REST_SECONDS)
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        url = f"http://{host}:{port}"
        with httpx.Client() as client:
            while client.get(f"{url}/ready").status_code != 200:
                time.sleep(REST_SECONDS)
        yield url
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def pool() -> Iterator[Pool]:
    """Threads for blocking work."""
    pool = Pool("test", 2)
    yield pool
    pool.close()


MakeApp = Callable[..., FastAPI]
MakeClient = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]
MakeServer = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def make_app(data: Path, tiny: Encoder) -> MakeApp:
    """Makes a search server over `data`, or an encoder worker, with these settings."""

    def make(
        encoder: Encoder = tiny, create: Callable[..., FastAPI] = create_app, **settings: Any
    ) -> FastAPI:
        complete = Settings(
            **{"data": data, "batch_tokens": 64, "queue_tokens": 4096, "max_wait_seconds": 60, **settings}
        )
        return create(complete, encoder)

    return make


@pytest.fixture
def make_client(make_app: MakeApp) -> MakeClient:
    """Makes a client of an application in the test's event loop; options as for `make_app`."""

    def make(
        headers: dict[str, str] | None = None, **options: Any
    ) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        return serving(make_app(**options), headers)

    return make


@pytest.fixture
def make_server(make_app: MakeApp) -> MakeServer:
    """Makes a real server on a free port and gives its address; options as for `make_app`."""

    def make(**options: Any) -> AbstractContextManager[str]:
        return real_server(make_app(**options))

    return make


@pytest.fixture
def serve() -> Callable[..., AbstractContextManager[str]]:
    """Serves an application, by default on a free port, and gives its address."""
    return real_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, built_data: Path, tiny: Encoder) -> Iterator[str]:
    """The address of a real server that the tests of one module share."""
    copy = shutil.copytree(built_data, tmp_path_factory.mktemp("server") / "data")
    settings = Settings(data=copy, batch_tokens=64, queue_tokens=4096)
    with real_server(create_app(settings, tiny)) as url:
        yield url


@pytest.fixture
async def client(make_client: MakeClient) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an open search server."""
    async with make_client() as client:
        yield client


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects to the address of a server; closed at the end."""
    with ExitStack() as connections:

        def make(url: str, receive_bytes: int | None = None) -> RawClient:
            client = RawClient(url, receive_bytes)
            connections.callback(client.socket.close)
            return client

        yield make


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    """That of a search server."""
    return create_app(Settings()).openapi()


@pytest.fixture
def start_server(tmp_path: Path, repository: Path) -> Iterator[StartServer]:
    """Starts `tercet COMMAND` on a free port, with the checkpoint that loads faster, unless another is named;
    gives the process and a client of it.
    """
    processes: list[subprocess.Popen[str]] = []
    stack = ExitStack()

    def start(
        command: str = "serve", *flags: str, **variables: str
    ) -> tuple[subprocess.Popen[str], httpx.Client]:
        port = stack.enter_context(held_port())
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TERCET_")}
        environment["TERCET_CHECKPOINT"] = "minilm-m3"
        with (tmp_path / f"log-{port}").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tercet.cli.main", command, "--port", str(port), *flags],
                cwd=tmp_path,
                env=environment | variables,
                stderr=log,
                text=True,
                preexec_fn=_heed_interrupts,
            )
        processes.append(process)
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_SECONDS)
        return process, stack.enter_context(client)

    yield start
    stack.close()
    for process in processes:
        process.kill()
        process.wait()


def _heed_interrupts() -> None:
    """A shell that starts tests in the background lets its children ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
