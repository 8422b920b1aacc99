"""A polite key beside clients that take what they can: how many of its searches are answered in time.

The polite key searches five times a second, and `/health` is asked ten times a second, beside one neighbour
at a time. That one's load comes from `wrk`, which costs little; bodies that come slowly, and requests sent
ahead, come from threads.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.generator import OK, Due, Sent, generator, get, post, send
from benchmarks.serving.server import DEMO, build, demo_queries, serving

SEARCHES_PER_SECOND, PROBES_PER_SECOND = 5, 10
TIMELY_SECONDS = 0.5
LEAST_SHARE = 0.95  # of the polite key's searches
HEALTH_MS = 50.0
CONNECTIONS = 200
SEARCHERS = 64
UPLOADS, UPLOAD_BYTES, UPLOADS_BYTES_PER_SECOND = 8, 8 << 20, 3_000_000
FLOODS, AHEAD_BYTES = 3, 1 << 20  # each on a new connection every tenth of a second
KEYS = (
    {"key": "polite-key", "access": "read", "id": "polite"},
    {"key": "greedy-key", "access": "write", "id": "greedy"},
    {"key": "limited-key", "access": "read", "id": "limited", "requests_per_second": 5},
)
SCRIPT = 'wrk.method, wrk.body = "POST", %s\nwrk.headers["Content-Type"] = "application/json"\n'

Neighbour = Callable[[int, Path], AbstractContextManager[Any]]


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures beside each neighbour, and the bars missed."""
    seconds = 5.0 if quick else 20.0
    if shutil.which("wrk") is None:
        raise FileNotFoundError("wrk is not installed; install it, as with apt-get install wrk")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="tercet-fairness-") as folder, generator() as run:
        data = Path(folder)
        build(data, "demo", DEMO / "corpus.jsonl")
        keys = data / "keys.jsonl"
        keys.write_text("".join(json.dumps(key) + "\n" for key in KEYS), encoding="utf-8")
        with serving(data, keys_file=str(keys)) as server:
            port = int(server.url.rpartition(":")[2])
            polite_load(run, port, 3.0)  # warm-up
            for name, neighbour in NEIGHBOURS.items():
                with neighbour(port, data):
                    time.sleep(1.0)
                    figures[name] = polite_load(run, port, seconds)
                time.sleep(2.0)
                print(f"{name:40}", figures[name])
    return figures, missed(figures)


def polite_load(run: Callable[..., Any], port: int, seconds: float) -> dict[str, float]:
    """What the polite key and who asks for the health get."""
    searches = [
        post("/search", json.dumps({"collection": "demo", "query": query}).encode(), _key("polite"))
        for query in demo_queries()
    ]
    ticks = range(int(seconds * PROBES_PER_SECOND))
    dues = [Due(tick / PROBES_PER_SECOND, "health", get("/health")) for tick in ticks]
    dues += [
        Due((tick + 0.5) / PROBES_PER_SECOND, "search", searches[tick % len(searches)])
        for tick in ticks[:: PROBES_PER_SECOND // SEARCHES_PER_SECOND]
    ]
    sent: Sent = run(send, port, sorted(dues, key=lambda due: due.seconds))
    answered = [each for each in sent.outcomes if each.kind == "search"]
    timely = sum(each.status == OK and each.seconds <= TIMELY_SECONDS for each in answered)
    health_ms = [each.seconds * 1000 for each in sent.outcomes if each.kind == "health"]
    search_ms = [each.seconds * 1000 for each in answered]
    return {
        "timely": round(timely / len(answered), 3),
        "search_ms_p50": round(float(np.median(search_ms)), 1),
        "search_ms_p95": round(float(np.percentile(search_ms, 95)), 1),
        "health_ms_p99": round(float(np.percentile(health_ms, 99)), 1),
    }


def missed(figures: dict[str, Any]) -> list[str]:
    """The bars that were missed."""
    return [
        f"{name}: {row['timely']:.0%} in time (bar {LEAST_SHARE:.0%}), /health {row['health_ms_p99']} ms "
        f"(bar {HEALTH_MS:g})"
        for name, row in figures.items()
        if row["timely"] < LEAST_SHARE or row["health_ms_p99"] > HEALTH_MS
    ]


def _key(name: str) -> str:
    return f"Authorization: Bearer {name}-key"


@contextmanager
def requests(
    port: int,
    folder: Path,
    key: str,
    connections: int = CONNECTIONS,
    *,
    fresh: bool = False,
    body: bytes | None = None,
) -> Iterator[None]:
    """Clients that each send the next request when the last one was answered."""
    path = "/collections" if body is None else "/search"
    headers = [f"Authorization: Bearer {key}", *(["Connection: close"] if fresh else [])]
    command = ["wrk", "--threads", "1", "--connections", str(connections), "--duration", "1h"]
    for line in headers:
        command += ["--header", line]
    if body is not None:
        script = folder / "search.lua"
        script.write_text(SCRIPT % json.dumps(body.decode()), encoding="utf-8")
        command += ["--script", str(script)]
    process = subprocess.Popen([*command, f"http://127.0.0.1:{port}{path}"], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def uploads(port: int, _folder: Path) -> Iterator[None]:
    """Large bodies of one key that come slowly, one after the other on each of some connections."""
    ended = threading.Event()
    pause_seconds = UPLOADS * (1 << 16) / UPLOADS_BYTES_PER_SECOND
    head = post("/embed", b"", _key("greedy")).replace(
        b"Content-Length: 0", b"Content-Length: %d" % UPLOAD_BYTES
    )

    def upload() -> None:
        while not ended.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                    connection.sendall(head)
                    for _ in range(UPLOAD_BYTES >> 16):
                        if ended.wait(pause_seconds):
                            return
                        connection.sendall(b" " * (1 << 16))
                    connection.recv(1 << 16)
            except OSError:
                ended.wait(0.1)

    yield from _threads([upload] * UPLOADS, ended)


@contextmanager
def sent_ahead(port: int, _folder: Path) -> Iterator[None]:
    """Connections whose clients send thousands of requests before they read an answer."""
    ended = threading.Event()
    request = get("/health")

    def flood() -> None:
        while not ended.is_set():
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
                    connection.sendall(request * (AHEAD_BYTES // len(request)))
                    ended.wait(0.1)
            except OSError:
                ended.wait(0.1)

    yield from _threads([flood] * FLOODS, ended)


def _threads(works: list[Callable[[], None]], ended: threading.Event) -> Iterator[None]:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


SEARCH = b'{"collection": "demo", "query": "why is the sky blue"}'
NEIGHBOURS: dict[str, Neighbour] = {
    "nobody": lambda _port, _folder: nullcontext(),
    "a key over its limit": partial(requests, key="limited-key"),
    "an unknown key": partial(requests, key="unknown-key"),
    "an unknown key, new connections": partial(requests, key="unknown-key", fresh=True),
    "searches of another key": partial(requests, key="greedy-key", connections=SEARCHERS, body=SEARCH),
    "slow uploads of another key": uploads,
    "requests sent ahead": sent_ahead,
}
