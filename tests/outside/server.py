"""The demo's server on a free port, with a key, for as long as the tests run."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 300  # the first start compiles kernels


@dataclass(frozen=True, slots=True)
class Server:
    """url: without a slash at its end; key: one that may write."""

    url: str
    key: str


@contextmanager
def demo_server(tercet: Path, folder: Path) -> Iterator[Server]:
    """`tercet demo` with its data in a folder. Raises RuntimeError with its log where it does not start."""
    server = Server(f"http://127.0.0.1:{_free_port()}", secrets.token_urlsafe(24))
    log = folder / "server.log"
    environment = {**os.environ, "TERCET_API_KEYS": server.key}
    command = [str(tercet), "demo", "--port", server.url.rpartition(":")[2], "--data", str(folder / "data")]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        try:
            _wait(server.url, process, log)
            yield server
        finally:
            process.terminate()
            process.wait(60)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/ready"):  # noqa: S310 - our own address
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
