"""What does a router before two shards cost a search, in processor time, beside one server with them all?

The abstracts of Cranfield lie in one collection of a server, and by a hash of their ids in two shards behind
a router. The same judged queries go to both in turns, over connections that are kept, by one client and by
sixteen. Queries are encoded once before and then known (setting `query_cache_bytes`), since a router encodes
as a server does. Times are the process's own, of user and system, a search; medians over the turns.

A plan (`tercet plan`) goes by what a router takes for sixteen clients: the last line says what to write in
`cluster/capacity/measured.py`.

Run: python -m benchmarks.router [--quick]
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recording import ROOT, dated, machine, write
from benchmarks.serving.cranfield import texts_of
from benchmarks.serving.server import Server, serving
from tercet.cluster.shards.placement import Placement
from tercet.index.candidates import Document
from tercet.ingest.target import open_or_create
from tercet.models.checkpoint import ENGLISH
from tercet.models.encoder import encode
from tercet.models.loader import load_encoder
from tercet.models.representations import Representations

SHARDS = 2
QUICK_TEXTS = 300
NAME = "cranfield"
CLIENTS = (1, 16)
LIMIT_MS = 5.0  # of the router, a search
CACHE_BYTES = 64 << 20

Figures = dict[str, Any]


def build(folders: Sequence[Path], texts: Sequence[str]) -> None:
    """Writes texts into a collection below the first folder, and divides them over those below the others."""
    encoder = load_encoder(str(ROOT / "checkpoints" / ENGLISH))
    parts = [encode(encoder, texts[start : start + 256]) for start in range(0, len(texts), 256)]
    encoded = Representations.concatenate(parts)
    ids = [str(row) for row in range(len(texts))]
    places = Placement.evenly(SHARDS).shards_of(ids)
    rows = [np.arange(len(ids)), *(np.flatnonzero(places == shard) for shard in range(SHARDS))]
    for folder, own in zip(folders, rows, strict=True):
        collection, _ = open_or_create(folder / "collections", NAME, encoder.info, {})
        with collection.writer() as writer:
            writer.add([Document(ids[row], texts[row]) for row in own.tolist()], encoded.take(own))
            writer.publish()


def ask(port: int, bodies: Sequence[bytes]) -> list[list[str]]:
    """The ids of the hits of each search, one after the other over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    for body in bodies:
        answer: Figures = {}
        while "hits" not in answer:  # a machine that is busy otherwise refuses some
            connection.request("POST", "/search", body, {"Content-Type": "application/json"})
            answer = json.loads(connection.getresponse().read())
        found.append([hit["id"] for hit in answer["hits"]])
    connection.close()
    return found


def asked_by(server: Server, bodies: Sequence[bytes], clients: int) -> None:
    """Sends all searches, divided among so many clients."""
    port = int(server.url.rpartition(":")[2])
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda first: ask(port, bodies[first::clients]), range(clients)))


def turn(front: Server, behind: Sequence[Server], bodies: Sequence[bytes], clients: int) -> list[float]:
    """Processor milliseconds a search, of the server that is asked and of those behind it."""
    before = [server.cpu_seconds for server in (front, *behind)]
    asked_by(front, bodies, clients)
    after = [server.cpu_seconds for server in (front, *behind)]
    return [1000 * (end - begin) / len(bodies) for begin, end in zip(before, after, strict=True)]


def measured(*, quick: bool) -> Figures:
    """Figures by number of clients."""
    turns, repeats = (2, 1) if quick else (7, 1)
    queries = texts_of("queries")[: 60 if quick else None]
    bodies = [json.dumps({"collection": NAME, "query": query}).encode() for query in queries]
    with tempfile.TemporaryDirectory(prefix="tercet-router-") as scratch, ExitStack() as stack:
        names = ["one", *(f"shard{shard}" for shard in range(SHARDS)), "router"]
        folders = [Path(scratch) / name for name in names]
        for folder in folders:
            folder.mkdir()
        texts = texts_of("corpus")[: QUICK_TEXTS if quick else None]
        build(folders[:-1], texts)

        def served(folder: Path, **settings: Any) -> Server:
            return stack.enter_context(
                serving(folder, query_cache_bytes=CACHE_BYTES, max_wait_seconds=60, **settings)
            )

        one, *behind = map(served, folders[:-1])
        router = served(folders[-1], shards=",".join(server.url for server in behind))
        found = [ask(int(server.url.rpartition(":")[2]), bodies) for server in (one, router)]
        figures: Figures = {"documents": len(texts), "same_hits": found[0] == found[1]}
        for clients in CLIENTS:
            alone, together = list[list[float]](), list[list[float]]()
            for _ in range(turns):
                alone.append(turn(one, [], bodies * repeats, clients))
                together.append(turn(router, behind, bodies * repeats, clients))
            own, *others = (statistics.median(column) for column in zip(*together, strict=True))
            figures[f"clients_{clients}"] = {
                "one_server_ms": round(statistics.median(each for (each,) in alone), 3),
                "router_ms": round(own, 3),
                "shards_ms": [round(each, 3) for each in others],
            }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few searches, and no results are written")
    asked = parser.parse_args()
    before = machine()
    figures = measured(quick=asked.quick)
    print(json.dumps(figures, indent=2))
    missed = [
        f"{name}: {each['router_ms']} ms, the bar is {LIMIT_MS}"
        for name, each in figures.items()
        if isinstance(each, dict) and each["router_ms"] > LIMIT_MS
    ]
    if not asked.quick:
        record = {
            "bar": {"router_ms": LIMIT_MS},
            **figures,
            "missed": missed,
        }
        write("router", dated(record, before))
    print(f"cluster/capacity/measured.py: ROUTER_MS is {figures[f'clients_{CLIENTS[-1]}']['router_ms']:.1f}")
    if missed or not figures["same_hits"]:
        raise SystemExit("; ".join(missed) or "the router's hits are others")


if __name__ == "__main__":
    main()
