"""Object stores of each kind that a test can have: a folder, and a bucket of an S3 server on this machine."""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from cluster.objects.opening import open_store
from cluster.objects.store import ObjectStore

STARTED_SECONDS = 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server, which refuses a second create as S3 does."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("moto[server], an S3 server, is not installed (pip install '.[dev]')")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (
        (tmp_path_factory.mktemp("s3") / "log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + STARTED_SECONDS
            while not _answers(url):
                assert server.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield url
        finally:
            server.terminate()


def _answers(url: str) -> bool:
    try:
        httpx.get(url, timeout=5, trust_env=False)
    except httpx.HTTPError:
        return False
    return True


@pytest.fixture
def s3_environment(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The usual variables, for this server; its address."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return s3_server


@pytest.fixture
def bucket(s3_environment: str) -> str:
    """The URL of a new bucket."""
    name = f"bucket-{secrets.token_hex(6)}"
    httpx.put(f"{s3_environment}/{name}", timeout=30, trust_env=False).raise_for_status()
    return f"s3://{name}"


@pytest.fixture(params=["folder", "s3"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store, of each kind in turn."""
    if request.param == "folder":
        return (tmp_path / "store").as_uri()
    return f"{request.getfixturevalue('bucket')}/below/it"


@pytest.fixture
def store(store_url: str) -> ObjectStore:
    """An empty store, of each kind in turn."""
    return open_store(store_url)


@pytest.fixture
def folder(tmp_path: Path) -> ObjectStore:
    """An empty store in a folder, where what is tested is the same for all kinds."""
    return open_store((tmp_path / "objects").as_uri())
