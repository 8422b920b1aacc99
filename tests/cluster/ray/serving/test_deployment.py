"""A deployment on a Ray cluster of this machine answers as one server, and goes on where a part is lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest

from tercet.cluster.ray.serving.ports import CALLS, DAEMONS, GCS, HEAD, PROXY, ROUTERS, WORKERS, ports_of
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.conftest import free_port
from tests.cluster.router.corpora import uneven_corpus
from tests.cluster.router.test_router import COLLECTION, QUERIES
from tests.service.conftest import real_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

STARTED_SECONDS = 240
TEMPORARY = "--temp-dir="
REPLICA = "ray::ServeReplica:tercet:"
LISTENING_SECONDS = 60
RECOVERED_SECONDS = 120
KEY = "a-key-of-this-test"
HEADERS = {"Authorization": f"Bearer {KEY}"}
# Something that each of Ray's ports would do for whoever has the token.
METHODS = {
    "--port": "ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "--ray-client-server-port": "ray.rpc.RayletDriver/ClusterInfo",
    "--node-manager-port": "ray.rpc.NodeManagerService/GetNodeStats",
    "--object-manager-port": "ray.rpc.ObjectManagerService/Push",
    "--dashboard-agent-grpc-port": "ray.rpc.ReporterService/GetTraceback",
}
PATHS = {
    "--dashboard-agent-listen-port": "/api/serve/applications/",
    "--runtime-env-agent-port": "/get_or_create_runtime_env",
}
SILENT = re.compile(
    r"(shard shard-1 is not asked for a moment, since it failed \d+ times: )?"
    r"shard shard-1 did not answer within [0-3](\.\d+)? s"
)
SEARCH = {"collection": "demo", "query": "green tea", "top_k": 5}


@dataclass(frozen=True)
class Deployed:
    """A deployment that runs: where it is reached, the file of it, and the process that holds it."""

    url: str
    port: int
    file: Path
    token_file: Path
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

    def processes(self) -> dict[int, psutil.Process]:
        """All that was started, by its number."""
        return {each.pid: each for each in psutil.Process(self.command.pid).children(recursive=True)}

    def replica(self, name: str) -> psutil.Process:
        """The process of a part of which there is one."""
        (found,) = [
            each for each in self.processes().values() if " ".join(each.cmdline()).startswith(REPLICA + name)
        ]
        return found


@dataclass(frozen=True)
class Listener:
    """Where a port is reached, and the process that listens there."""

    address: str
    command: str


@pytest.fixture(scope="module")
def deployed(ray_alone: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two shards behind a router, by `tercet deploy ray`."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install '.[ray]')")
    taken = [number for port in (*HEAD, *DAEMONS, *PROXY) for number in port.numbers if not _is_free(number)]
    if taken:
        pytest.skip(f"ports of Ray are in use: {taken}")
    root = tmp_path_factory.mktemp("deployed")
    port, file, token_file = free_port(), root / "two.toml", root / "token"
    file.write_text(
        f'checkpoint = "minilm-m3"\nport = {port}\nrouter_cpus = 0.5\n'
        + "".join(f'[[shards]]\ndata = "{root / name}"\nnum_cpus = 0.5\n' for name in ("first", "second"))
        + f'[settings]\napi_keys = "{KEY}"\n[ray]\nnum_cpus = 4\ntoken_file = "{token_file}"\n'
    )
    log = root / "log"
    with log.open("w") as written, _command(file, stderr=written) as command:
        try:
            found = Deployed(f"http://127.0.0.1:{port}", port, file, token_file, command)
            _within(
                STARTED_SECONDS, lambda: "answers on port" in log.read_text() or command.poll() is not None
            )
            assert command.poll() is None, log.read_text()
            # Some of Ray's processes listen only after the deployment answers.
            _within(LISTENING_SECONDS, lambda: not _unheard(found))
            yield found
        finally:
            left = psutil.Process(command.pid).children(recursive=True)
            folders = [
                Path(flag.removeprefix(TEMPORARY)).parent
                for each in left
                for flag in each.cmdline()
                if flag.startswith(TEMPORARY)
            ]
            command.send_signal(signal.SIGTERM)
            command.wait(90)
    assert not psutil.wait_procs(left, 10)[1]
    assert folders
    assert not any(folder.exists() for folder in folders)


@pytest.fixture(scope="module")
def filled(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployed, str]]:
    """The deployment, and the address of one server, both with the same documents."""
    documents, _ = uneven_corpus(60, 3, 1)
    written = [
        {"id": each.id, "text": each.text, "title": each.title, "metadata": each.metadata}
        for each in documents
    ]
    settings = Settings(data=tmp_path_factory.mktemp("one"), port=0, checkpoint="minilm-m3", api_keys=(KEY,))
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


def test_every_port_is_in_the_list(deployed: Deployed) -> None:
    ports = ports_of(deployed.port)
    listed = {number for port in ports if port is not CALLS for number in port.numbers}
    listening = _listening(deployed)
    for number in set(listening) - listed:
        assert number in CALLS.numbers
        assert listening[number].command.startswith(REPLICA), listening[number]
    assert not _unheard(deployed)


def test_who_has_no_token_is_refused(deployed: Deployed) -> None:
    methods = dict.fromkeys(CALLS.numbers, "ray.serve.ASGIService/HandleRequest")
    methods |= dict.fromkeys(WORKERS.numbers, "ray.rpc.CoreWorkerService/GetCoreWorkerStats")
    for port in (*HEAD, *DAEMONS, *PROXY, ROUTERS):
        for number in port.numbers:
            methods[number] = METHODS.get(port.flag, "")
    asked = {port: each for port, each in _listening(deployed).items() if methods.get(port)}
    assert len(asked) > 10
    for port, each in asked.items():
        assert _refusal(each.address, methods[port]) == grpc.StatusCode.UNAUTHENTICATED, (port, each)
    for port in DAEMONS:
        if port.flag in PATHS:
            address = _listening(deployed)[port.first].address
            answer = httpx.post(f"http://{address}{PATHS[port.flag]}")
            assert answer.status_code == 401, port
    guarded = {port.flag for port in (*HEAD, *DAEMONS) if port.guard == "token"}
    assert guarded == METHODS.keys() | PATHS.keys()


def test_who_has_no_key_is_refused_at_every_way_in(deployed: Deployed) -> None:
    fallback = next(port.first for port in PROXY if port.guard == "keys")
    routers = set(ROUTERS.numbers) & set(_listening(deployed))
    for port in (deployed.port, fallback, *routers):
        answer = httpx.post(f"http://127.0.0.1:{port}/search", json=SEARCH)
        assert answer.status_code == 401, port


def test_the_token_is_for_its_owner_alone(deployed: Deployed) -> None:
    assert deployed.token_file.stat().st_mode & 0o777 == 0o600
    assert len(deployed.token_file.read_text()) == 64


def test_a_shard_that_hangs_ends_in_an_error_that_names_it(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    expected = deployed.hits()
    replica = deployed.replica("shard-1")
    replica.send_signal(signal.SIGSTOP)
    try:
        # A busy machine may take all 3 s before a shard is asked: then the error names none.
        _within(RECOVERED_SECONDS, lambda: _names_silent_shard(deployed.search()))
        silent = {"shards": ["shard-1"]}
        _within(
            RECOVERED_SECONDS, lambda: deployed.search(allow_partial=True).json().get("partial") == silent
        )
    finally:
        replica.send_signal(signal.SIGCONT)
    _within(RECOVERED_SECONDS, lambda: _is(deployed.search(), expected))


def test_a_shard_that_is_killed_comes_back(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    expected = deployed.hits()
    deployed.replica("shard-0").kill()
    answer = deployed.search()
    assert _is(answer, expected) or answer.status_code in (503, 504), answer.text
    partial = deployed.search(allow_partial=True)
    assert partial.json().get("partial", {"shards": ["shard-0"]}) == {"shards": ["shard-0"]}, partial.text
    _within(RECOVERED_SECONDS, lambda: _is(deployed.search(), expected))


def test_an_encoder_that_is_killed_comes_back(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    expected = deployed.hits()
    deployed.replica("encoders").kill()
    _within(RECOVERED_SECONDS, lambda: _is(deployed.search(query="green  tea"), expected))


def test_it_is_taken_down_by_a_second_command(filled: tuple[Deployed, str]) -> None:
    deployed, _ = filled
    with _command(deployed.file, "--address", f"127.0.0.1:{GCS.first}", "--down") as command:
        assert command.wait(180) == 0
    _within(60, lambda: httpx.get(f"{deployed.url}/health").status_code == 404)


def _command(file: Path, *arguments: str, stderr: Any = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tercet.cli.main", "deploy", "ray", str(file), *arguments],
        stderr=stderr,
        stdout=subprocess.DEVNULL,
        text=True,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")},
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
    )


def _hits(answer: dict[str, Any]) -> object:
    """All that tells of hits."""
    if "results" in answer:
        return [_hits(each) for each in answer["results"]]
    return {name: answer.get(name) for name in ("hits", "groups", "facets", "exhausted", "partial")}


def _is(answer: httpx.Response, expected: object) -> bool:
    return answer.status_code == 200 and _hits(answer.json()) == expected


def _names_silent_shard(answer: httpx.Response) -> bool:
    """Whether it says so of shard-1, with the time that was left when it was asked."""
    message = answer.json()["error"]["message"]
    return answer.status_code == 503 and SILENT.fullmatch(message) is not None


def _listening(deployed: Deployed) -> dict[int, Listener]:
    """The ports on which the deployment listens."""
    started = {**deployed.processes(), deployed.command.pid: psutil.Process(deployed.command.pid)}
    found: dict[int, Listener] = {}
    for each in psutil.net_connections("tcp"):
        if each.status == psutil.CONN_LISTEN and each.pid in started:
            host = each.laddr.ip.removeprefix("::ffff:")
            host = "127.0.0.1" if host in ("::", "0.0.0.0") else host
            command = " ".join(started[each.pid].cmdline())
            found[each.laddr.port] = Listener(f"{host}:{each.laddr.port}", command)
    return found


def _unheard(deployed: Deployed) -> list[str]:
    """What each port is for on which nothing listens."""
    listening = set(_listening(deployed))
    return [port.purpose for port in ports_of(deployed.port) if listening.isdisjoint(port.numbers)]


def _refusal(address: str, method: str) -> grpc.StatusCode:
    """What a request without a token gets."""
    with grpc.insecure_channel(address) as channel:
        try:
            channel.unary_unary(f"/{method}")(b"", timeout=60)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code
    return grpc.StatusCode.OK


def _is_free(port: int) -> bool:
    import socket

    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


def _within(seconds: float, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.3)
