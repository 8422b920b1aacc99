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
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import Server, environment, free_port, serving
from tercet.cluster.objects.opening import open_store
from tercet.cluster.shards.map import newest_map
from tercet.models.checkpoint import ENGLISH
from tests.endurance.cluster.traffic import (
    DOCUMENTS,
    NAME,
    QUERIES,
    WORDS,
    Figures,
    Writes,
    percentile_ms,
    searching,
    writing,
)

CODEC = "int8"  # which learns nothing of the documents that there are first
SHORTEST_KILL_SECONDS, LONGEST_KILL_SECONDS = 0.5, 2.5
SEARCHERS = 2
QUIET_SECONDS = 20.0  # of searches and writes before the first move


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
