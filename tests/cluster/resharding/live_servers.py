"""Servers of shards that a collection moves between, routers before them, and writers that never stop."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from tercet.cluster.objects.opening import open_store
from tercet.cluster.resharding.servers import Opening, opened_servers
from tercet.cluster.router.app import create_router_app
from tercet.cluster.shards.client import ShardAccess
from tercet.cluster.shards.map import ShardPlace, newest_map, publish_map
from tercet.cluster.snapshots.following import Follower
from tercet.cluster.snapshots.moving import SnapshotMoving
from tercet.service.app import create_app
from tercet.service.settings.settings import Settings
from tests.cluster.conftest import free_port
from tests.service.conftest import real_server

NAME = "articles"
COLLECTION = f"/collections/{NAME}"
DOCUMENTS = f"{COLLECTION}/documents"
WORDS = ("tea", "water", "train", "steam", "leaf", "green", "black", "station", "hot", "brew")


class Cluster:
    """Servers of one test, all in this process; their data roots stay where they are stopped."""

    def __init__(self, folder: Path, url: str, encoder: Any) -> None:
        self.url = url
        self._folder = folder
        self._encoder = encoder
        self._stack = ExitStack()
        self.apps: dict[str, FastAPI] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.opened: Opening = self._stack.enter_context(opened_servers(ShardAccess()))

    def server(self, name: str) -> str:
        """The address of one that has what it had before, and may be a shard."""
        data = self._folder / name
        settings = Settings(data=data, snapshot_store=self.url, max_wait_seconds=60)
        app = create_app(settings, self._encoder, moving=SnapshotMoving(self.url, data))
        url = self._stack.enter_context(real_server(app))
        self.apps[url] = app
        return url

    def replica(self, name: str, folder: str) -> str:
        """The address of one that follows what a shard publishes in its folder."""
        data, url = self._folder / name, f"{self.url}/{folder}"
        settings = Settings(data=data, follow=url, follow_seconds=0.05, max_wait_seconds=60)
        app = create_app(settings, self._encoder, following=Follower(url, data))
        return self._stack.enter_context(real_server(app))

    def router(self, name: str, follow_seconds: float = 0.05) -> str:
        """The address of a router that follows the map."""
        settings = Settings(
            data=self._folder / name,
            shards=(self.url,),
            follow_seconds=follow_seconds,
            max_wait_seconds=60,
        )
        return self._stack.enter_context(real_server(create_router_app(settings, self._encoder)))

    @contextmanager
    def router_process(self, name: str) -> Iterator[str]:
        """The address of a router in a process of its own, which is killed in the end."""
        port = free_port()
        program = [sys.executable, "-m", "tests.cluster.resharding.router_process"]
        with subprocess.Popen([*program, self.url, str(self._folder / name), str(port)]) as process:
            address = f"http://127.0.0.1:{port}"
            try:
                while not _is_ready(address):
                    assert process.poll() is None
                    time.sleep(0.05)
                self._processes[address] = process
                yield address
            finally:
                process.kill()

    def kill(self, address: str) -> None:
        """Ends the process of a router at once."""
        self._processes[address].kill()

    def serve_map(self, *names: str) -> list[str]:
        """Begins servers with what a build in shards published, and has the map name them."""
        store = open_store(self.url)
        former = newest_map(store)
        assert former is not None
        folders = [place.snapshots for place in former.shards]
        urls = [self.server(name) for name in names]
        shards = self.opened(urls, NAME)
        shards.bring(folders, former.version)
        shards.keep(former.version)
        publish_map(store, NAME, list(map(ShardPlace, folders, urls)), former.placement, former)
        return urls

    def close(self) -> None:
        """Ends all."""
        self._stack.close()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5).is_success
    except httpx.TransportError:
        return False


class Writer(threading.Thread):
    """Puts, changes and deletes documents of its own all the time, first at routers and then at one server;
    it deletes by ids or by a filter.

    A 503 is repeated until it is acknowledged; anything else is a failure.
    """

    def __init__(self, number: int, routers: Sequence[str], one: str) -> None:
        super().__init__(daemon=True)
        self._own = f"w{number}-"
        self._years = range(10 * number, 10 * number + 10)  # of its documents alone
        self._routers = routers
        self._one = one
        self._random = random.Random(number)
        self._ended = threading.Event()
        self.acknowledged = self.repeated = 0
        self.failures: list[str] = []

    def run(self) -> None:
        with httpx.Client(timeout=60) as client:
            while not self._ended.is_set() and not self.failures:
                method, path, body = self._next()
                if self._acknowledged(client, method, path, body):
                    client.request(method, self._one + path, json=body).raise_for_status()
                time.sleep(
                    0.05
                )  # else they keep the interpreter from the move, which is in this process, too

    def end(self) -> None:
        """Returns once its last write is at both."""
        self._ended.set()
        self.join(60)
        assert not self.is_alive()
        assert self.failures == []

    def _next(self) -> tuple[str, str, Any]:
        ids = [f"{self._own}{self._random.randrange(20)}" for _ in range(self._random.randint(1, 5))]
        ids = sorted(set(ids))
        kind = self._random.randrange(6)
        if kind == 0:
            return "POST", f"{DOCUMENTS}/delete", {"ids": ids}
        if kind == 1:
            return "POST", f"{DOCUMENTS}/delete", {"filter": {"eq": {"year": self._year()}}}
        if kind == 2:
            change = {"metadata": {"year": self._year()}, "merge": True}
            return "POST", f"{DOCUMENTS}/update", {"ids": ids, **change}
        documents = [
            {"id": id, "text": " ".join(self._random.choices(WORDS, k=6)), "metadata": {"year": self._year()}}
            for id in ids
        ]
        return "PUT", DOCUMENTS, {"documents": documents}

    def _year(self) -> int:
        return self._random.choice(self._years)

    def _acknowledged(self, client: httpx.Client, method: str, path: str, body: Any) -> bool:
        began = time.monotonic()
        while True:
            router = self._random.choice(self._routers)
            try:
                answer = client.request(method, router + path, json=body)
            except httpx.TransportError:  # it was killed
                self.repeated += 1
                continue
            if answer.is_success:
                self.acknowledged += 1
                return True
            if answer.status_code != 503 or time.monotonic() > began + 60:
                self.failures.append(f"{method} {path} {answer.status_code} {answer.text}")
                return False
            self.repeated += 1
            time.sleep(0.02)


@contextmanager
def writing(routers: Sequence[str], one: str, count: int = 3) -> Iterator[list[Writer]]:
    """Writers that go on meanwhile, and have written something before and after it."""
    writers = [Writer(number, routers, one) for number in range(count)]
    for writer in writers:
        writer.start()
    wait_for_writes(writers)
    yield writers
    wait_for_writes(writers)
    for writer in writers:
        writer.end()


def wait_for_writes(writers: Sequence[Writer], count: int = 5) -> None:
    """Returns once each has had so many more acknowledged."""
    wanted = [writer.acknowledged + count for writer in writers]
    until = time.monotonic() + 60
    while any(writer.acknowledged < least for writer, least in zip(writers, wanted, strict=True)):
        assert time.monotonic() < until
        assert [writer.failures for writer in writers] == [[]] * len(writers)
        time.sleep(0.01)


def documents_of(url: str) -> dict[str, Any]:
    """All documents of a server by id; none twice."""
    found: dict[str, Any] = {}
    after: str | None = None
    with httpx.Client(timeout=60) as client:
        while True:
            query = {"limit": 1000} | ({} if after is None else {"after": after})
            page = client.get(url + DOCUMENTS, params=query).raise_for_status().json()
            for document in page["documents"]:
                assert document["id"] not in found
                found[document["id"]] = document
            after = page["next"]
            if after is None:
                return found


def answers_of(url: str) -> list[Any]:
    """Hits and scores of some queries."""
    found = []
    with httpx.Client(timeout=60) as client:
        for query in ("green tea", "steam train station", "hot water"):
            body = {"collection": NAME, "query": query, "top_k": 30}
            answer = client.post(f"{url}/search", json=body).raise_for_status().json()
            found.append([(hit["id"], hit["score"]) for hit in answer["hits"]])
    return found
