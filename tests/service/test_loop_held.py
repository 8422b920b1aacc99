"""No single request holds the event loop: the largest permitted and the largest wrong bodies, to every route.

The bodies are made from the OpenAPI description, so a new route is among those that are asked.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.serving.server import serving
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.endurance.serving.extremes import Description

SERVER = Path(__file__).with_name("watched_tiny.py")
BUSY_MS = 20.0  # processor time of the loop's own thread in one turn
# Of all threads while the loop waits, which on a busy machine is more than what held the interpreter's lock.
HELD_MS = 100.0
TRIES = 10
OPERATIONS = Description(create_app(Settings()).openapi()).operations


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, built_data: Path) -> Iterator[httpx.Client]:
    """A client of a server, in a process of its own, that tells for how long its loop was held."""
    data = shutil.copytree(built_data, tmp_path_factory.mktemp("watched") / "data")
    with (
        # As many of one write as of texts: lists of 1,000 and of 1,024 take as long.
        serving(data, program=[str(SERVER)], max_wait_seconds=60, max_write_documents=1024) as server,
        httpx.Client(base_url=server.url, timeout=120) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_extreme_bodies_do_not_hold_the_loop(watched: httpx.Client, method: str, path: str) -> None:
    limits = watched.get("/info").json()["limits"]
    lengths = sorted({limits["texts"], limits["documents"], limits["write_documents"]})
    description = Description(watched.get("/openapi.json").json())
    seen = 0
    for request in description.extremes(method, path, limits["body_bytes"], lengths):
        for left in reversed(range(TRIES)):
            watched.get("/stopped")
            answer = watched.request(
                method, request.path, content=request.body, headers={"Content-Type": "application/json"}
            )
            assert answer.status_code < 500, (request.name, answer.text)
            stopped = watched.get("/stopped").json()
            if stopped["busy_ms"] <= BUSY_MS and stopped["held_ms"] <= HELD_MS:
                break
            assert left, (request.name, stopped)  # else another process may have been in the way
        seen += 1
    assert seen >= 3


@pytest.mark.slow
def test_the_description_is_made_beside_the_loop(tmp_path: Path, built_data: Path) -> None:
    data = shutil.copytree(built_data, tmp_path / "data")
    with serving(data, program=[str(SERVER)]) as server, httpx.Client(base_url=server.url) as client:
        client.get("/stopped")
        assert client.get("/openapi.json").status_code == 200
        assert client.get("/stopped").json()["busy_ms"] <= 5 * BUSY_MS  # to make it takes .4 s
