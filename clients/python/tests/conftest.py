"""A real server on a free port, with the embedded checkpoint."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tercet_client import Client

KEY = "a-key-of-these-tests"
SECONDS = 120


@contextmanager
def held_port() -> Iterator[int]:
    """A port that the server may listen on, and that the system gives nobody else meanwhile."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server reads what jobs name."""
    folder = tmp_path_factory.mktemp("data") / "sources"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> Iterator[str]:
    """The address of a server that needs KEY."""
    tercet = shutil.which("tercet", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if tercet is None:
        pytest.skip("the command tercet is not installed here; install the server to run these tests")
    folder = tmp_path_factory.mktemp("server")
    command = [tercet, "serve", "--data", str(sources.parent)]
    keys = folder / "keys"
    keys.write_text(KEY + "\n")
    keys.chmod(0o600)
    with held_port() as port:
        command += ["--port", str(port), "--api-keys-file", str(keys)]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_ready(url := f"http://127.0.0.1:{port}", process, folder / "log")
            yield url
        finally:
            process.terminate()
            process.wait(SECONDS)


def wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/ready").is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    with Client(server, key=KEY) as client:
        yield client


@pytest.fixture
def collection(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of an empty collection."""
    name = f"c{abs(hash(request.node.name)) % 10**9}"
    client.create_collection(name, {"fields": {"year": "integer"}})
    yield name
    client.delete_collection(name)
