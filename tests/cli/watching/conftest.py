"""A folder of text, and what a running server's collection holds of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ports import held_port

Listed = Callable[[], dict[str, Any]]
SECONDS = 180.0


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "tea.md").write_text("# Tea\n\nHot.\n\n## Japan\n\nSteamed.\n")
    (folder / "bees.html").write_text("<h1 id=bees>Bees</h1><p>They dance.")
    return folder


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def url(data_root: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a server for all tests of a file, each of which has a collection of its own."""
    with held_port() as port:
        command = [
            sys.executable,
            "-m",
            "tercet.cli.main",
            "serve",
            "--port",
            str(port),
            "--data",
            str(data_root),
        ]
        with (data_root / "server.log").open("wb") as log:
            process = subprocess.Popen(
                command, env={**environment, "TERCET_API_KEYS": "secret"}, stdout=log, stderr=log
            )
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + SECONDS
        while not is_ready(url):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield url
        process.terminate()
        process.wait(SECONDS)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture
def collection(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:60]


@pytest.fixture
def listed(url: str, collection: str) -> Listed:
    """The documents of the test's collection, by id."""

    def listed() -> dict[str, Any]:
        answer = httpx.get(
            f"{url}/collections/{collection}/documents", headers={"Authorization": "Bearer secret"}
        )
        assert answer.status_code == 200, answer.text
        return {each["id"]: each for each in answer.json()["documents"]}

    return listed


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], None]:
    def wait_until(true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not true():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    return wait_until
