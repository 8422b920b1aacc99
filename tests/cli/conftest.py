"""The `tercet` command as a user runs it: in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tercet.cli.main import main
from tests.ports import held_port

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SERVER_SECONDS = 180.0

DOCUMENTS = [
    {"id": "tea", "title": "Green tea", "text": "Tea is brewed with hot water.", "metadata": {"year": 2001}},
    {"id": "rail", "text": "The train leaves the station at noon.", "metadata": {"year": 1830}},
    {"id": "bees", "text": "Bees dance to tell where flowers are.", "metadata": {"year": 1927}},
    {"id": "korea", "title": "김치", "text": "김치는 배추를 소금에 절여 발효시킨 음식이다."},
]


@pytest.fixture(scope="session")
def environment(embedded_checkpoint: Path) -> dict[str, str]:
    """Variables of a user without settings; two threads suit the machines that run tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TERCET_")}
    return {
        **kept,
        "TERCET_CHECKPOINT": str(embedded_checkpoint),
        "TERCET_THREADS": "2",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Callable[..., subprocess.Popen[str]]:
    """Starts a command in an empty working folder."""

    def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tercet.cli.main", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def tercet(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command to its end, in this process, which spares loading all libraries each time."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TERCET_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name, value in {**environment, **variables}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["tercet", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def tercet_without(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Runs a command as if a package were not installed, in a process of its own, so modules stay."""

    def run(package: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = f"import sys; sys.modules[{package!r}] = None; from tercet.cli.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of four documents."""
    path = tmp_path / "documents.jsonl"
    path.write_text("\n".join(map(json.dumps, DOCUMENTS)), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data root that commands use by default."""
    return tmp_path / "data"


@pytest.fixture
def built(tercet: Run, source: Path, data: Path) -> Path:
    """A data root with the collection `small`."""
    done = tercet("collection", "build", str(source), "--collection", "small", "--field", "year:integer")
    assert done.returncode == 0, done.stderr
    return data


@pytest.fixture
def server(built: Path, environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A running server over the built data root; its address. It publishes writes when it is asked to."""
    with held_port() as port:
        with (tmp_path / "server.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tercet.cli.main", "serve", "--port", str(port), "--data", str(built)],
                env={**environment, "TERCET_API_KEYS": "secret", "TERCET_FLUSH_SECONDS": "3600"},
                stdout=log,
                stderr=log,
            )
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + SERVER_SECONDS
        while True:
            assert time.monotonic() < deadline
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{url}/ready").status_code == 200:
                    break
            time.sleep(0.1)
        yield url
        process.terminate()
        process.wait(SERVER_SECONDS)
