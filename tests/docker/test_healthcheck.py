"""The health check against a real server on a free port."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


class Health(BaseHTTPRequestHandler):
    """Answers /health with the server's `status`."""

    def do_GET(self) -> None:
        self.send_response(self.server.status if self.path == "/health" else 404)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as running:
        running.status = 200  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def check(root: Path, port: int, *path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "docker" / "healthcheck.py", *path],
        env={**os.environ, "TERCET_PORT": str(port), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_healthy(root: Path, server: ThreadingHTTPServer) -> None:
    result = check(root, server.server_port)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_proxy_in_the_environment_is_not_asked(root: Path, server: ThreadingHTTPServer) -> None:
    assert check(root, server.server_port, http_proxy="http://127.0.0.1:9").returncode == 0


def test_an_error_status_is_unhealthy(root: Path, server: ThreadingHTTPServer) -> None:
    server.status = 503  # type: ignore[attr-defined]
    result = check(root, server.server_port)
    assert result.returncode == 1
    assert "503" in result.stderr


def test_another_path_can_be_asked_for(root: Path, server: ThreadingHTTPServer) -> None:
    result = check(root, server.server_port, "/ready")
    assert result.returncode == 1
    assert "/ready" in result.stderr
    assert "404" in result.stderr


def test_nobody_listening_is_unhealthy_in_one_line(root: Path, server: ThreadingHTTPServer) -> None:
    server.server_close()
    result = check(root, server.server_port)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
