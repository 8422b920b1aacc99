"""Is anything lost while a collection moves to other shards, how much is copied, and how long do searches and
writes take?

A collection is built in three shards, which servers of their own serve behind two routers. Writers put,
change and delete documents without pause, each its own, at one router or the other; what is refused with 503,
or has no answer as a router was killed, they send again until it is acknowledged. Searchers ask meanwhile,
and hold what they find of documents that nobody writes against what was found first. The collection grows to
four shards and to five, and goes back to three. Each time the command is killed at random moments and run
again, as often as asked for, and then it is left alone; by default that is so with the last move alone. In
the end each document must be as its last acknowledged write left it, and hits and scores must be those of one
server with the same documents.

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
STILL = {"lt": {"year": 2000}}  # those that nobody writes
SEARCHERS = 2
QUIET_SECONDS = 20.0  # of searches and writes before the first move

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
            id: {"text": " ".join(self._random.choices(WORDS, k=6)), "metadata": {"year": 2000}} for id in ids
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


class Searcher(threading.Thread):
    """Searches without pause; every other time for documents that nobody writes, by the dense side alone,
    which is exact and the same whatever else there is. seconds: of each search, with the moment of its end.
    """

    def __init__(self, routers: Sequence[str], stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._routers = routers
        self._stopped = stopped
        self._still: dict[str, list[str]] = {}
        self.seconds: list[tuple[float, float]] = []
        self.failures: list[str] = []

    def run(self) -> None:
        with httpx.Client(timeout=90, trust_env=False) as client:
            while not self._stopped.is_set():
                for still in (False, True):
                    query = random.choice(QUERIES)
                    body: Figures = {"collection": NAME, "query": query, "top_k": 20}
                    if still:
                        body |= {"weights": {"dense": 1, "sparse": 0, "colbert": 0}, "filter": STILL}
                    began = time.monotonic()
                    answer = client.post(f"{random.choice(self._routers)}/search", json=body)
                    ended = time.monotonic()
                    if not answer.is_success:
                        self.failures.append(f"{answer.status_code} {answer.text}")
                        continue
                    self.seconds.append((ended, ended - began))
                    ids = [hit["id"] for hit in answer.json()["hits"]]
                    if still and self._still.setdefault(query, ids) != ids:
                        self.failures.append(f"{query}: {ids}, not {self._still[query]}")


@contextmanager
def searching(routers: Sequence[str], count: int) -> Iterator[list[Searcher]]:
    """Searchers meanwhile."""
    stopped = threading.Event()
    searchers = [Searcher(routers, stopped) for _ in range(count)]
    for searcher in searchers:
        searcher.start()
    yield searchers
    stopped.set()
    for searcher in searchers:
        searcher.join()


def percentile_ms(searchers: Sequence[Searcher], since: float, until: float) -> Figures:
    """The median and the 99th percentile of searches that ended in a time."""
    found = sorted(
        seconds for searcher in searchers for ended, seconds in searcher.seconds if since <= ended < until
    )
    return {
        "searches": len(found),
        "p50_ms": round(1000 * found[len(found) // 2], 1),
        "p99_ms": round(1000 * found[min(len(found) - 1, len(found) * 99 // 100)], 1),
    }


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

    def build(self, documents: dict[str, Figures], shards: int) -> list[str]:
        """Builds in so many shards, and begins servers with what was built; their addresses."""
        source = self._folder / "documents.jsonl"
        lines = [json.dumps({"id": id, **content}) + "\n" for id, content in documents.items()]
        source.write_text("".join(lines), encoding="utf-8")
        ports = [free_port() for _ in range(shards)]
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        flags = ["--collection", NAME, "--checkpoint", ENGLISH, "--field", "year:integer"]
        flags += ["--token-codec", CODEC, "--output", self.store]
        flags += ["--shards", str(shards), "--shard-urls", ",".join(addresses)]
        run("collection", "build", str(source), *flags, "--progress", "none")
        found = newest_map(open_store(self.store))
        assert found is not None
        for number, place in enumerate(found.shards):
            data = self._folder / f"built-{number}"
            run("collection", "pull", NAME, f"{self.store}/{place.snapshots}", "--data", str(data))
            self.server(f"built-{number}", port=ports[number], snapshot_store=self.store)
        return addresses

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
    held, documents = report["held_seconds"], sum(shard["documents"] for shard in report["shards"])
    return {
        "shards": len(urls),
        "kills": kills - ended,
        "ended_before_a_kill": ended,
        "seconds": round(time.monotonic() - began, 1),
        "held_seconds": None if held is None else round(held, 2),
        "documents": documents,
        "moved_documents": report["moved_documents"],
        "moved_share": round(report["moved_documents"] / documents, 4),
        "moved_bytes": report["moved_bytes"],
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


def stored_bytes(url: str) -> int:
    """Of the collection's segments."""
    found = httpx.get(f"{url}/collections/{NAME}/stats", timeout=60).raise_for_status().json()
    return sum(int(size) for size in found["bytes"].values())


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
        three = world.build(writes.documents, 3)
        routers = [world.router("router-0"), world.router("router-1")]
        urls = [router.url for router in routers]
        moves = []
        with writing(urls, writers, writes), searching(urls[:1], SEARCHERS) as searchers:
            time.sleep(QUIET_SECONDS / 4)
            began = time.monotonic()
            time.sleep(QUIET_SECONDS)
            quiet = percentile_ms(searchers, began, time.monotonic())
            five = [*three, world.shard("fourth"), world.shard("fifth")]
            for servers, times in ((five[:4], 0), (five, 0), (three, kills)):
                stored, began = stored_bytes(urls[0]), time.monotonic()
                move = moved(world, servers, times, chance)
                move["moved_bytes_share"] = round(move["moved_bytes"] / stored, 4)
                moves.append({**move, "searches": percentile_ms(searchers, began, time.monotonic())})
            routers[1].process.kill()
            world.stop("router-1", "fourth", "fifth")
            world.router("router-1", int(routers[1].url.rpartition(":")[2]))
            time.sleep(QUIET_SECONDS / 4)
        failures = writes.failures + [each for searcher in searchers for each in searcher.failures]
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
        "searches_before": quiet,
        "moves": moves,
        "acknowledged_writes": writes.acknowledged,
        "refused_and_repeated": writes.refused,
        "unanswered_and_repeated": writes.unanswered,
        "longest_write_seconds": round(writes.longest_seconds, 2),
        "lost_or_old_documents": len(lost),
        "documents_that_should_not_be": len(found.keys() - writes.documents.keys()),
        "same_hits_and_scores": same,
        "failures": failures,
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
