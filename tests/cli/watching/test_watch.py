"""`tercet documents put --watch`, as a process that follows a folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ports import held_port

WaitUntil = Callable[[Callable[[], bool]], None]
Listed = Callable[[], dict[str, Any]]
Start = Callable[..., "subprocess.Popen[str]"]
SECONDS = 120.0


def lines_of(process: subprocess.Popen[str], until: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if until in line:
            return line
    raise AssertionError(process.stderr and process.stderr.read())


@contextmanager
def watching(start: Start, docs: Path, url: str, collection: str) -> Iterator[subprocess.Popen[str]]:
    command = ["documents", "put", str(docs), "--collection", collection, "--watch", "--split", "markdown"]
    with start(*command, "--url", url, TERCET_API_KEYS="secret", PYTHONUNBUFFERED="1") as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_changes_follow_and_a_signal_ends_it(
    start: Start, url: str, collection: str, docs: Path, listed: Listed, wait_until: WaitUntil
) -> None:
    with watching(start, docs, url, collection) as process:
        lines_of(process, "is followed")
        assert len(listed()) == 3
        (docs / "guide" / "tea.md").write_text("# Tea\n\nCold.\n")
        (docs / "new").mkdir()
        (docs / "new" / "x.txt").write_text("x")
        (docs / "bees.html").unlink()
        wait_until(lambda: set(listed()) == {"guide/tea.md#tea", "new/x.txt#1"})
        assert listed()["guide/tea.md#tea"]["text"] == "Cold."
        (docs / "new").rename(docs / "old")
        wait_until(lambda: set(listed()) == {"guide/tea.md#tea", "old/x.txt#1"})
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.fixture
def restarted(
    environment: dict[str, str], tmp_path: Path
) -> Iterator[tuple[str, Callable[[], subprocess.Popen[bytes]]]]:
    """An address, and what starts a server there."""
    processes = []
    command = [sys.executable, "-m", "tercet.cli.main", "serve", "--data", str(tmp_path / "data"), "--port"]

    def begin() -> subprocess.Popen[bytes]:
        with (tmp_path / "server.log").open("ab") as log:
            processes.append(subprocess.Popen([*command, str(port)], env=environment, stdout=log, stderr=log))
        return processes[-1]

    with held_port() as port:
        yield f"http://127.0.0.1:{port}", begin
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_it_outlives_a_server(
    start: Start,
    restarted: tuple[str, Callable[[], subprocess.Popen[bytes]]],
    docs: Path,
    wait_until: WaitUntil,
) -> None:
    url, begin = restarted
    with watching(start, docs, url, "docs") as process:
        assert process.wait(SECONDS) == 1  # a server that is away at the start is likely a wrong address
    first = begin()
    wait_until(lambda: is_ready(url))
    with watching(start, docs, url, "docs") as process:
        lines_of(process, "is followed")
        first.terminate()
        first.wait(SECONDS)
        (docs / "guide" / "tea.md").write_text("# Tea\n\nCold.\n")
        lines_of(process, "trying again in 1 s")
        begin()
        lines_of(process, "put guide/tea.md")
        found = httpx.get(f"{url}/collections/docs/documents").json()["documents"]
        assert [each["id"] for each in found] == ["bees.html#bees", "guide/tea.md#tea"]
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").status_code == 200
    except httpx.HTTPError:
        return False
