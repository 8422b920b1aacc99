"""Is anything lost while a collection moves to other shards, and for how long are writes held?

A collection is built in two shards, which servers of their own serve behind two routers. Writers put, change
and delete documents without pause, each its own, at one router or the other; what is refused with 503, or has
no answer as a router was killed, they send again until it is acknowledged. Meanwhile the collection moves to
three shards, by a command that is killed at random moments and then run again, and back to two by one that is
left alone. In the end each document must be as its last acknowledged write left it, and hits and scores must
be those of one server with the same documents.

All run on this machine, as processes, over a folder. Seconds are those of a machine that did other work too.

Run: python -m tests.endurance.cluster.resharding [--documents 5000] [--writers 4] [--kills 10]
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import Server, environment, free_port, serving
from tercet.cluster.objects.opening import open_store
from tercet.cluster.shards.map import newest_map
from tercet.models.checkpoint import ENGLISH

NAME = "articles"
CODEC = "int8"  # which learns nothing of the documents that there are first
DOCUMENTS = f"/collections/{NAME}/documents"
WORDS = ("tea", "water", "train", "steam", "leaf", "green", "black", "station", "hot", "brew", "rail", "cup")
QUERIES = ("green tea", "steam train at the station", "hot water", "black leaf", "brew a cup", "rail")
SHORTEST_KILL_SECONDS, LONGEST_KILL_SECONDS = 0.5, 2.5
OWN = 200  # documents of each writer

Figures = dict[str, Any]


def tercet(*arguments: str) -> subprocess.Popen[str]:
    """A command under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "tercet.cli.main", *arguments],
        env=environment({}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str) -> str:
    """What a command prints. Raises RuntimeError where it fails."""
    process = tercet(*arguments)
    out, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"tercet {' '.join(arguments)}: {errors}")
    return out


@dataclass
class Writes:
    """What writers saw. documents: by id, as the last acknowledged write left it."""

    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0
    longest_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    documents: dict[str, Figures] = field(default_factory=dict)


class Writer(threading.Thread):
    """Writes documents of its own without pause."""

    def __init__(self, number: int, routers: Sequence[str], writes: Writes, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._ids = [f"w{number}-{each}" for each in range(OWN)]
        self._routers = routers
        self._stopped = stopped
        self._random = random.Random(number)
        self._all = writes

    def run(self) -> None:
        with httpx.Client(timeout=90, trust_env=False) as client:
            while not self._stopped.is_set() and not self._all.failures:
                ids = self._random.sample(self._ids, self._random.randint(1, 5))
                match self._random.randrange(4):
                    case 0:
                        self._remove(client, ids)
                    case 1:
                        self._change(client, ids)
                    case _:
                        self._put(client, ids)

    def _put(self, client: httpx.Client, ids: Sequence[str]) -> None:
        new = {
            id: {"text": " ".join(self._random.choices(WORDS, k=6)), "metadata": {"year": 1990}} for id in ids
        }
        documents = [{"id": id, **content} for id, content in new.items()]
        if self._acknowledged(client, "PUT", DOCUMENTS, {"documents": documents}):
            self._all.documents.update(new)

    def _change(self, client: httpx.Client, ids: Sequence[str]) -> None:
        metadata = {"year": self._random.randrange(2000, 2020)}
        if self._acknowledged(client, "POST", f"{DOCUMENTS}/update", {"ids": ids, "metadata": metadata}):
            for id in ids:
                if id in self._all.documents:
                    self._all.documents[id] = {**self._all.documents[id], "metadata": metadata}

    def _remove(self, client: httpx.Client, ids: Sequence[str]) -> None:
        if self._acknowledged(client, "POST", f"{DOCUMENTS}/delete", {"ids": ids}):
            for id in ids:
                self._all.documents.pop(id, None)

    def _acknowledged(self, client: httpx.Client, method: str, path: str, body: Any) -> bool:
        began = time.monotonic()
        while True:
            try:
                answer = client.request(method, self._random.choice(self._routers) + path, json=body)
            except httpx.TransportError:
                self._all.unanswered += 1
                time.sleep(0.1)
                continue
            if answer.is_success:
                self._all.acknowledged += 1
                self._all.longest_seconds = max(self._all.longest_seconds, time.monotonic() - began)
                return True
            if answer.status_code not in (429, 503):
                self._all.failures.append(f"{method} {path}: {answer.status_code} {answer.text}")
                return False
            self._all.refused += 1
            time.sleep(0.1)


@contextmanager
def writing(routers: Sequence[str], count: int, writes: Writes) -> Iterator[None]:
    """Writers meanwhile, each of which ends with its last write acknowledged."""
    stopped = threading.Event()
    writers = [Writer(number, routers, writes, stopped) for number in range(count)]
    for writer in writers:
        writer.start()
    yield
    stopped.set()
    for writer in writers:
        writer.join()


class World:
    """The servers, below one folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.store = (folder / "store").as_uri()
        self._folder = folder
        self._stack = stack
        self._began: dict[str, ExitStack] = {}

    def build(self, documents: dict[str, Figures]) -> None:
        """Builds in two shards, and begins their servers with what was built."""
        source = self._folder / "documents.jsonl"
        lines = [json.dumps({"id": id, **content}) + "\n" for id, content in documents.items()]
        source.write_text("".join(lines), encoding="utf-8")
        ports = [free_port(), free_port()]
        urls = ",".join(f"http://127.0.0.1:{port}" for port in ports)
        flags = ["--collection", NAME, "--checkpoint", ENGLISH, "--field", "year:integer"]
        flags += ["--token-codec", CODEC, "--output", self.store, "--shards", "2", "--shard-urls", urls]
        run("collection", "build", str(source), *flags, "--progress", "none")
        found = newest_map(open_store(self.store))
        assert found is not None
        for number, place in enumerate(found.shards):
            data = self._folder / f"built-{number}"
            run("collection", "pull", NAME, f"{self.store}/{place.snapshots}", "--data", str(data))
            self.server(f"built-{number}", port=ports[number], snapshot_store=self.store)

    def shard(self, name: str) -> str:
        """The address of a new one."""
        return self.server(name, snapshot_store=self.store).url

    def router(self, name: str, port: int = 0) -> Server:
        """One that follows the map."""
        return self.server(name, port=port, shards=self.store, follow_seconds=1)

    def server(self, name: str, port: int = 0, **settings: Any) -> Server:
        """One with a data root of this name."""
        (self._folder / name).mkdir(exist_ok=True)
        own = self._began[name] = self._stack.enter_context(ExitStack())
        return own.enter_context(serving(self._folder / name, port=port, max_wait_seconds=60, **settings))

    def stop(self, *names: str) -> None:
        """Ends servers."""
        for name in names:
            self._began.pop(name).close()


def moved(world: World, urls: Sequence[str], kills: int, chance: random.Random) -> Figures:
    """Moves the collection to these servers; the command is killed so often before."""
    command = [
        "collection",
        "reshard",
        world.store,
        "--shards",
        str(len(urls)),
        "--shard-urls",
        ",".join(urls),
    ]
    began, ended = time.monotonic(), 0
    for _ in range(kills):
        process = tercet(*command, "--live", "--json")
        try:
            process.wait(chance.uniform(SHORTEST_KILL_SECONDS, LONGEST_KILL_SECONDS))
            ended += 1
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
    report = json.loads(run(*command, "--live", "--json"))
    held = report["held_seconds"]
    return {
        "shards": len(urls),
        "kills": kills - ended,
        "ended_before_a_kill": ended,
        "seconds": round(time.monotonic() - began, 1),
        "held_seconds": None if held is None else round(held, 2),
    }


def documents_of(url: str) -> dict[str, Figures]:
    """All documents of a server. Raises RuntimeError for one that is there twice."""
    found: dict[str, Figures] = {}
    after = None
    while True:
        query = {"limit": 1000} | ({} if after is None else {"after": after})
        page = httpx.get(url + DOCUMENTS, params=query, timeout=60).raise_for_status().json()
        for each in page["documents"]:
            if each["id"] in found:
                raise RuntimeError(f"{each['id']} is there twice")
            found[each["id"]] = {"text": each["text"], "metadata": each["metadata"]}
        after = page["next"]
        if after is None:
            return found


def answers_of(url: str) -> list[list[tuple[str, float]]]:
    """Hits and scores of all queries."""
    bodies = [{"collection": NAME, "query": query, "top_k": 50} for query in QUERIES]
    answers = [
        httpx.post(f"{url}/search", json=body, timeout=60).raise_for_status().json() for body in bodies
    ]
    return [[(hit["id"], hit["score"]) for hit in answer["hits"]] for answer in answers]


def measured(documents: int, writers: int, kills: int, seed: int) -> Figures:
    """Figures of one run."""
    chance = random.Random(seed)
    writes = Writes()
    for number in range(documents):
        text = " ".join(chance.choices(WORDS, k=6))
        writes.documents[f"d{number}"] = {"text": text, "metadata": {"year": 1900 + number % 100}}
    with tempfile.TemporaryDirectory(prefix="tercet-resharding-") as scratch, ExitStack() as stack:
        world = World(Path(scratch), stack)
        world.build(writes.documents)
        routers = [world.router("router-0"), world.router("router-1")]
        with writing([router.url for router in routers], writers, writes):
            up = moved(world, [world.shard(f"up-{number}") for number in range(3)], kills, chance)
            routers[1].process.kill()
            world.stop("router-1", "built-0", "built-1")
            world.router("router-1", int(routers[1].url.rpartition(":")[2]))
            down = moved(world, [world.shard(f"down-{number}") for number in range(2)], 0, chance)
        world.stop("up-0", "up-1", "up-2")
        found = documents_of(routers[0].url)
        one = world.server("one").url
        settings = {"fields": {"year": "integer"}, "token_codec": CODEC}
        httpx.put(f"{one}/collections/{NAME}", json=settings, timeout=60).raise_for_status()
        everything = [{"id": id, **content} for id, content in writes.documents.items()]
        for start in range(0, len(everything), 200):
            body = {"documents": everything[start : start + 200]}
            httpx.put(one + DOCUMENTS, json=body, timeout=600).raise_for_status()
        alone, *others = (answers_of(url) for url in (one, *(router.url for router in routers)))
        same = all(answers == alone for answers in others)
    lost = [id for id, content in writes.documents.items() if found.get(id) != content]
    return {
        "documents": documents,
        "writers": writers,
        "moves": [up, down],
        "acknowledged_writes": writes.acknowledged,
        "refused_and_repeated": writes.refused,
        "unanswered_and_repeated": writes.unanswered,
        "longest_write_seconds": round(writes.longest_seconds, 2),
        "lost_or_old_documents": len(lost),
        "documents_that_should_not_be": len(found.keys() - writes.documents.keys()),
        "same_hits_and_scores": same,
        "failures": writes.failures,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=10, help="of the command that moves to three shards")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    figures = measured(asked.documents, asked.writers, asked.kills, asked.seed)
    print(json.dumps(figures, indent=2))
    wrong = figures["lost_or_old_documents"] or figures["documents_that_should_not_be"] or figures["failures"]
    if wrong or not figures["same_hits_and_scores"]:
        raise SystemExit("something was lost, or answers are others")


if __name__ == "__main__":
    main()
