"""Object stores of each kind that a test can have: a folder, and a bucket of an S3 server on this machine.

Also sources of collections in shards, whose shards become collections of this machine.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest

from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.map import newest_map
from tercet.cluster.snapshots.pulling import pull
from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.index.verify import verify

STARTED_SECONDS = 60
WORDS = ("tea", "water", "train", "steam", "leaf", "green", "black", "station", "hot", "brew")
FIRST = np.array([0])


def free_port() -> int:
    """Below the ports that the system gives, of which another test may get one before this is used."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server, which refuses a second create as S3 does."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("moto[server], an S3 server, is not installed (pip install '.[dev]')")
    port = free_port()
    command = [sys.executable, "-m", "tests.cluster.s3_server", "-H", "127.0.0.1", "-p", str(port)]
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


class Overwriting(BaseHTTPRequestHandler):
    """An S3 server that knows no conditions, as some are: each PUT replaces what is there."""

    objects: ClassVar[dict[str, bytes]] = {}
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.put(self.rfile.read(int(self.headers["Content-Length"])))

    def put(self, content: bytes) -> None:
        self.objects[self.path] = content
        self.answer(200, b"")

    def do_GET(self) -> None:
        found = self.objects.get(self.path)
        part = re.fullmatch("bytes=([0-9]+)-([0-9]+)", self.headers.get("Range", ""))
        if found is None or part is None:
            self.answer(404 if found is None else 200, found or b"")
        else:
            first, last = map(int, part.groups())
            self.answer(206, found[first : last + 1], f"bytes {first}-{last}/{len(found)}")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        for key in re.findall("<Key>(.*?)</Key>", asked):
            self.objects.pop(f"/bucket/{key}", None)
        self.answer(200, b"<DeleteResult><Deleted><Key>x</Key></Deleted></DeleteResult>")

    def answer(self, status: int, body: bytes, content_range: str | None = None) -> None:
        self.send_response(status)
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"')
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def bucket_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type[Overwriting]], str]]:
    """Begins an S3 server of a kind, without objects; the URL of its bucket."""
    with ExitStack() as stack:

        def begin(kind: type[Overwriting]) -> str:
            kind.objects = {}
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), kind))
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            _use(monkeypatch, f"http://127.0.0.1:{server.server_port}")
            return "s3://bucket/path"

        yield begin


@pytest.fixture
def overwriting_bucket(bucket_of: Callable[[type[Overwriting]], str]) -> str:
    """The URL of a bucket where a second create overwrites."""
    return bucket_of(Overwriting)


def _use(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def s3_environment(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The usual variables, for this server; its address."""
    _use(monkeypatch, s3_server)
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


@pytest.fixture
def write_source(tmp_path: Path) -> Callable[..., Path]:
    """Writes documents of varied length, each with its number in its text; the ids begin with a letter."""

    def write(count: int, name: str = "x.jsonl", start: int = 0) -> Path:
        lines = [
            {"id": f"d{i:04d}", "text": " ".join(WORDS[(i * k) % 10] for k in range(1, 2 + i % 9)) + f" {i}"}
            | ({"title": f"tea {i % 5}"} if i % 3 else {})
            | {"year": 1900 + i % 50}
            for i in range(start, start + count)
        ]
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return path

    return write


@pytest.fixture
def pull_shards(tmp_path: Path) -> Iterator[Callable[[str], list[Snapshot]]]:
    """Pulls every shard that the newest map of a URL names, verifies it, and opens its snapshot."""
    opened: list[Snapshot] = []

    def pull_all(url: str) -> list[Snapshot]:
        store = open_store(url)
        shards = newest_map(store)
        assert shards is not None
        found = []
        for number, shard in enumerate(shards.shards):
            root = tmp_path / "pulled" / f"{shards.version}-{len(opened)}-{number}" / "collections"
            root.mkdir(parents=True)
            pull(root, shards.collection, store.below(shard.snapshots), root.parent / "stages")
            assert verify(root, shards.collection) == []
            found.append(Collection.open(root, shards.collection).snapshot())
        opened.extend(found)
        return found

    yield pull_all
    for snapshot in opened:
        snapshot.close()


@pytest.fixture(scope="session")
def stored() -> Callable[[Snapshot], dict[str, Any]]:
    """All that a snapshot stores of each document, by id, as bytes."""

    def of(snapshot: Snapshot) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for rows in snapshot.rows(1, 1):
            tokens = rows.tokens
            offsets = (0, 0) if tokens is None else (tokens.offsets[0], tokens.offsets[-1])
            (id,) = rows.ids.take(FIRST)
            assert id.decode() not in found
            found[id.decode()] = (
                bytes(rows.contents.take(FIRST)[0]),
                rows.dense.tobytes(),
                rows.sparse.token_ids.tobytes(),
                rows.sparse.weights.tobytes(),
                None if tokens is None else tokens.codes[offsets[0] : offsets[1]].tobytes(),
                None if rows.windows is None else rows.windows.spans.tobytes(),
            )
        return found

    return of
