"""What one request costs the event loop: processor time of its thread, beside that of the commit before.

Servers of both trees take turns, with requests one after another: searches and `/health`, on one connection
and on a new one for each. A server's loop runs in the main thread of its process, of which the kernel tells.
"""

from __future__ import annotations

import json
import shutil
import socket
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.serving.generator import get, post
from benchmarks.serving.server import DEMO, ROOT, Server, build, demo_queries, serving
from benchmarks.serving.trees import tree_of

BASE = "3a6c0d1"  # the commit before the edge was one
ROUNDS, REQUESTS = 10, 200
QUICK_ROUNDS, QUICK_REQUESTS = 2, 50
RATIO = 1 / 3


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Milliseconds of the loop by kind of request and tree, and the bar if it was missed."""
    rounds, count = (QUICK_ROUNDS, QUICK_REQUESTS) if quick else (ROUNDS, REQUESTS)
    searches = [
        post("/search", json.dumps({"collection": "demo", "query": each}).encode()) for each in demo_queries()
    ]
    kinds = {
        "search": [searches[number % len(searches)] for number in range(count)],
        "health": [get("/health")] * count,
    }
    with tempfile.TemporaryDirectory(prefix="tercet-loop-") as scratch, ExitStack() as running:
        built = Path(scratch) / "this"
        built.mkdir()
        build(built, "demo", DEMO / "corpus.jsonl")
        trees = {"this": ROOT}
        base = tree_of(BASE, Path(scratch) / "base-code")
        if base is not None:
            shutil.copytree(built, Path(scratch) / "base")
            trees["base"] = base
        servers = {
            tree: running.enter_context(serving(Path(scratch) / tree, code=code))
            for tree, code in trees.items()
        }
        spent: dict[tuple[str, str, bool], list[float]] = {}
        for turn in range(rounds + 1):  # the first warms up
            for tree, server in servers.items():
                for kind, contents in kinds.items():
                    for fresh in (False, True):
                        milliseconds = loop_milliseconds(server, contents, fresh=fresh)
                        if turn:
                            spent.setdefault((tree, kind, fresh), []).append(milliseconds)
    figures: dict[str, Any] = {}
    for (tree, kind, fresh), values in spent.items():
        name = f"{kind}, {'new connections' if fresh else 'one connection'}"
        figures.setdefault(name, {})[f"{tree}_ms"] = round(statistics.median(values), 3)
    missed = []
    for name, each in figures.items():
        if "base_ms" in each:
            each["ratio"] = round(each["this_ms"] / each["base_ms"], 2)
            if name.startswith("search") and each["ratio"] > RATIO:
                missed.append(
                    f"{name}: {each['ratio']} of the former time of the loop, the bar is {RATIO:.2f}"
                )
    print_table(figures)
    return figures, missed


def loop_milliseconds(server: Server, contents: Sequence[bytes], *, fresh: bool) -> float:
    """Of the main thread, for each of these requests."""
    address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    before = main_thread_seconds(server)
    connection: socket.socket | None = None
    for content in contents:
        if connection is None:
            connection = socket.create_connection(address)
        connection.sendall(content)
        read_answer(connection)
        if fresh:
            connection.close()
            connection = None
    if connection is not None:
        connection.close()
    return 1000 * (main_thread_seconds(server) - before) / len(contents)


def main_thread_seconds(server: Server) -> float:
    """Its processor time so far."""
    pid = server.process.pid
    told = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii")
    return int(told.split()[0]) / 1e9


def read_answer(connection: socket.socket) -> None:
    """Takes one answer, which must be 200."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(1 << 16)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), received
    size = next(
        int(line.partition(b":")[2])
        for line in head.lower().splitlines()
        if line.startswith(b"content-length")
    )
    while len(body) < size:
        body += connection.recv(1 << 16)


def print_table(figures: Mapping[str, Mapping[str, float]]) -> None:
    """One line for each kind of request."""
    print(f"{'request':28}  loop ms  before  ratio")
    for name, each in figures.items():
        print(
            f"{name:28}  {each['this_ms']:7.3f}  {each.get('base_ms', 0):6.3f}  {each.get('ratio', 0):5.2f}"
        )
