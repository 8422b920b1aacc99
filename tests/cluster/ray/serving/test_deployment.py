"""A deployment on a Ray cluster of this machine answers as one server, also after an encoder is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.conftest import free_port
from tests.cluster.router.corpora import uneven_corpus
from tests.cluster.router.test_router import COLLECTION, QUERIES
from tests.service.conftest import real_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

STARTED_SECONDS = 240
RECOVERED_SECONDS = 120
REPLICA = "ray::ServeReplica:tercet:"
TOKEN = "a" * 64
KEY = "a-key-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}"}
SEARCH = {"collection": "demo", "query": "green tea", "top_k": 5}


@dataclass(frozen=True)
class Deployed:
    """A deployment that runs: where it is reached, the file of it, and the process that holds it."""

    url: str
    file: Path
    command: subprocess.Popen[str]

    def search(self, **options: Any) -> httpx.Response:
        """Answer to a search that is given 3 s."""
        headers = HEADERS | {"X-Request-Timeout": "3"}
        return httpx.post(f"{self.url}/search", json=SEARCH | options, headers=headers, timeout=30)

    def hits(self) -> object:
        """Of the same search, which is given as long as it takes."""
        answer = httpx.post(f"{self.url}/search", json=SEARCH, headers=HEADERS, timeout=120)
        assert answer.status_code == 200, answer.text
        return _hits(answer.json())

    @property
    def processes(self) -> list[psutil.Process]:
        """All that was started."""
        return psutil.Process(self.command.pid).children(recursive=True)

    @property
    def encoder(self) -> psutil.Process:
        """The process of the one encoder."""
        (found,) = [each for each in self.processes if " ".join(each.cmdline()).startswith(REPLICA + "enc")]
        return found

    def flag(self, name: str) -> str:
        """What Ray's processes were told by a flag."""
        flags = [flag for each in self.processes for flag in each.cmdline() if flag.startswith(name)]
        return flags[0].removeprefix(name)


@pytest.fixture(scope="module")
def deployed(ray_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """A router before two servers, by `tercet deploy ray`."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install '.[ray]')")
    root = tmp_path_factory.mktemp("deployed")
    port, file, log = free_port(), root / "two.toml", root / "log"
    with ExitStack() as servers, log.open("w") as written:
        urls = [servers.enter_context(real_server(create_app(_settings(root / name)))) for name in "ab"]
        file.write_text(
            f'checkpoint = "minilm-m3"\nport = {port}\nrouter_cpus = 0.5\n[settings]\napi_keys = "{KEY}"\n'
            f'shards = "{",".join(urls)}"\nshards_key = "{KEY}"\n[ray]\nnum_cpus = 4\n'
        )
        with _command(file, stderr=written) as command:
            try:
                found = Deployed(f"http://127.0.0.1:{port}", file, command)
                _within(
                    STARTED_SECONDS,
                    lambda: "answers on port" in log.read_text() or command.poll() is not None,
                )
                assert command.poll() is None, log.read_text()
                left, folder = found.processes, Path(found.flag("--temp-dir=")).parent
                assert folder.stat().st_mode & 0o777 == 0o700
                yield found
            finally:
                command.send_signal(signal.SIGTERM)
                command.wait(90)
        assert not psutil.wait_procs(left, 10)[1]
        assert not folder.exists()


@pytest.fixture(scope="module")
def filled(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, str]]:
    """The deployment, and the address of one server, both with the same documents."""
    documents, _ = uneven_corpus(60, 3, 1)
    written = [
        {"id": each.id, "text": each.text, "title": each.title, "metadata": each.metadata}
        for each in documents
    ]
    settings = _settings(tmp_path_factory.mktemp("one"))
    with real_server(create_app(settings)) as one, httpx.Client(timeout=60, headers=HEADERS) as client:
        for url in (one, deployed.url):
            _within(60, lambda url=url: client.get(f"{url}/ready").status_code == 200)
            assert client.put(f"{url}/collections/demo", json=COLLECTION).status_code == 201
            answer = client.put(f"{url}/collections/demo/documents", json={"documents": written})
            assert answer.status_code == 200, answer.text
        yield deployed, one


def test_answers_are_those_of_one_server(filled: tuple[Deployed, str]) -> None:
    deployed, one = filled
    for query in QUERIES:
        body = {"collection": "demo", **query}
        found, expected = (
            httpx.post(f"{url}/search", json=body, headers=HEADERS, timeout=60) for url in (deployed.url, one)
        )
        assert expected.status_code == 200, expected.text
        assert found.status_code == 200, (query, found.text)
        assert _hits(found.json()) == _hits(expected.json()), query


def test_large_bodies_pass_between_replicas(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    text = "steam and hot water " * 300
    documents = [{"id": f"long-{number}", "text": f"{number} {text}", "metadata": {}} for number in range(20)]
    url = f"{deployed.url}/collections/demo/documents"
    answer = httpx.put(url, json={"documents": documents}, headers=HEADERS, timeout=120)
    assert answer.status_code == 200, answer.text
    for document in documents:
        assert httpx.delete(f"{url}/{document['id']}", headers=HEADERS).status_code == 200


def test_who_has_no_key_is_refused(deployed: Deployed) -> None:
    assert httpx.post(f"{deployed.url}/search", json=SEARCH).status_code == 401


def test_an_encoder_that_is_killed_comes_back(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    expected = deployed.hits()
    deployed.encoder.kill()
    _within(RECOVERED_SECONDS, lambda: _is(deployed.search(query="green  tea"), expected))


def test_it_is_taken_down_by_a_second_command(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    with _command(deployed.file, "--address", deployed.flag("--gcs-address="), "--down") as command:
        assert command.wait(180) == 0
    _within(60, lambda: httpx.get(f"{deployed.url}/health").status_code == 404)


def _settings(data: Path) -> Settings:
    return Settings(data=data, port=0, checkpoint="minilm-m3", api_keys=(KEY,))


def _command(file: Path, *arguments: str, stderr: Any = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tercet.cli.main", "deploy", "ray", str(file), *arguments],
        stderr=stderr,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "RAY_AUTH_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def _hits(answer: dict[str, Any]) -> object:
    """All that tells of hits."""
    if "results" in answer:
        return [_hits(each) for each in answer["results"]]
    return {name: answer.get(name) for name in ("hits", "groups", "facets", "exhausted", "partial")}


def _is(answer: httpx.Response, expected: object) -> bool:
    return answer.status_code == 200 and _hits(answer.json()) == expected


def _within(seconds: float, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)
