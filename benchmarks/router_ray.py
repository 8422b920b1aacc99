"""What does a search over two shards cost on Ray Serve, in processor time, beside the same over HTTP?

The collections are those of `router.py`. The same judged queries go to a router over HTTP with two shards,
and to a deployment of `tercet deploy ray` over copies of the same shards, in turns; both know the encoded
queries. Times are of user and system, a search; medians over the turns. Ray's own processes (control, daemon,
agents, controller, proxies) and HAProxy are told apart from ours, and what they take while nobody asks.

Run: python -m benchmarks.router_ray [--quick]
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.router import CACHE_BYTES, CLIENTS, NAME, ROOT, SHARDS, build
from benchmarks.serving.cranfield import texts_of
from benchmarks.serving.server import Server, environment, free_port, machine, serving, wait_until_ready
from tercet.models.checkpoint import ENGLISH

RESULT = ROOT / "benchmarks" / "results" / "router_ray.json"
QUICK_TEXTS = 300
STARTED_SECONDS = 240.0
IDLE_SECONDS = 20.0
REFUSED_SECONDS = 0.05
REPLICA = "ray::ServeReplica:tercet:"

Figures = dict[str, Any]
Times = dict[str, float]


@dataclass(frozen=True, slots=True)
class OnRay:
    """A deployment: its address, and the command that holds it."""

    server: Server

    def cpu_seconds(self) -> Times:
        """Processor time so far, by kind of process."""
        found = dict.fromkeys(("router", "shards", "encoders", "haproxy", "ray"), 0.0)
        for each in self.server.process.children(recursive=True):
            try:
                times = each.cpu_times()
                found[_kind(" ".join(each.cmdline()))] += times.user + times.system
            except psutil.NoSuchProcess:
                continue
        return found


def _kind(command: str) -> str:
    if command.startswith(REPLICA):
        part = command.removeprefix(REPLICA)
        return "shards" if part.startswith("shard-") else part.split(".")[0].split()[0]
    return "haproxy" if "/haproxy" in command and "ray::" not in command else "ray"


@contextmanager
def on_ray(folder: Path, shards: Sequence[Path], settings: Figures) -> Iterator[OnRay]:
    """A deployment of one encoder, these shards and one router on a Ray of this machine."""
    port = free_port()
    deployment = {
        "checkpoint": ENGLISH,
        "port": port,
        "shards": [{"data": str(shard), "num_cpus": 0.5} for shard in shards],
        "router_cpus": 0.5,
        "ray": {"num_cpus": 4, "token_file": str(folder / "token")},
        "settings": {**settings, "log_level": "warning"},
    }
    file = folder / "deployment.yaml"
    file.write_text(json.dumps(deployment), encoding="utf-8")  # which is YAML, too
    with (folder / "deploy.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tercet.cli.main", "deploy", "ray", str(file)],
            env=environment({}),
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, STARTED_SECONDS)
        yield OnRay(Server(url, psutil.Process(process.pid)))
    finally:
        process.terminate()
        process.wait(90)


def ask(server: Server, bodies: Sequence[bytes]) -> list[list[str]]:
    """The ids of the hits of each search, one after the other over one connection.

    On a machine that others use, too, a server that falls behind refuses some: these are sent again.
    """
    found = []
    with httpx.Client(timeout=60, headers={"Content-Type": "application/json"}) as client:
        for body in bodies:
            while True:
                answer = client.post(f"{server.url}/search", content=body)
                if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
                    break
                time.sleep(REFUSED_SECONDS)
            found.append([hit["id"] for hit in answer.raise_for_status().json()["hits"]])
    return found


def asked_by(server: Server, bodies: Sequence[bytes], clients: int) -> None:
    """Sends all searches, divided among so many clients."""
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda first: ask(server, bodies[first::clients]), range(clients)))


def http_times(router: Server, shards: Sequence[Server]) -> Times:
    """Processor time so far of a router over HTTP and its shards."""
    return {"router": router.cpu_seconds, "shards": sum(shard.cpu_seconds for shard in shards)}


def per_search(before: Times, after: Times, searches: int) -> Times:
    """Milliseconds a search, by kind."""
    return {name: 1000 * (after[name] - before[name]) / searches for name in after}


def medians(turns: Sequence[Times]) -> Times:
    """Of each kind."""
    return {f"{name}_ms": round(statistics.median(each[name] for each in turns), 3) for name in turns[0]}


def measured(*, quick: bool) -> Figures:
    """Figures by number of clients."""
    turns, repeats = (2, 1) if quick else (5, 1)
    bodies = [
        json.dumps({"collection": NAME, "query": query}).encode()
        for query in texts_of("queries")[: 60 if quick else None]
    ]
    texts = texts_of("corpus")[: QUICK_TEXTS if quick else None]
    with tempfile.TemporaryDirectory(prefix="tercet-router-ray-") as scratch, ExitStack() as stack:
        root = Path(scratch)
        shards = [root / f"shard{shard}" for shard in range(SHARDS)]
        copies = [root / f"copy{shard}" for shard in range(SHARDS)]
        for folder in (root / "one", root / "router", *shards):
            folder.mkdir()
        build([root / "one", *shards], texts)
        for shard, copy in zip(shards, copies, strict=True):
            shutil.copytree(shard, copy)
        known: dict[str, Any] = {"query_cache_bytes": CACHE_BYTES, "max_wait_seconds": 60}
        behind = [stack.enter_context(serving(folder, **known)) for folder in shards]
        urls = ",".join(server.url for server in behind)
        router = stack.enter_context(serving(root / "router", shards=urls, **known))
        deployed = stack.enter_context(on_ray(root, copies, known))
        found = [ask(server, bodies) for server in (router, deployed.server)]
        figures: Figures = {
            "documents": len(texts),
            "same_hits": found[0] == found[1],
            "idle_ms_a_second": idle(deployed, 2 if quick else IDLE_SECONDS),
        }
        for clients in CLIENTS:
            times: dict[str, list[Times]] = {"http": [], "ray": []}
            for _ in range(turns):
                for way, server, look in (
                    ("http", router, partial(http_times, router, behind)),
                    ("ray", deployed.server, deployed.cpu_seconds),
                ):
                    before = look()
                    asked_by(server, bodies * repeats, clients)
                    times[way].append(per_search(before, look(), len(bodies) * repeats))
            figures[f"clients_{clients}"] = {way: medians(each) for way, each in times.items()}
    return figures


def idle(deployed: OnRay, seconds: float) -> Times:
    """Processor milliseconds a second while nobody asks, by kind."""
    before = deployed.cpu_seconds()
    time.sleep(seconds)
    after = deployed.cpu_seconds()
    return {name: round(1000 * (after[name] - before[name]) / seconds, 1) for name in after}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few searches, and no results are written")
    asked = parser.parse_args()
    before = machine()
    figures = measured(quick=asked.quick)
    print(json.dumps(figures, indent=2))
    if not asked.quick:
        record = {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": before,
            **figures,
        }
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if not figures["same_hits"]:
        raise SystemExit("hits over Ray are others")


if __name__ == "__main__":
    main()
