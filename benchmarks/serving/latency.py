"""What a search costs beside its arithmetic.

Processor time of `POST /search`, of which encoder sessions and late interaction are taken off; what HTTP adds
to the same search in Python. One encoder thread where processor time is split, since that of one thread can
be read; the default elsewhere.

The collections hold the abstracts of Cranfield, in representations by the embedded encoder; the larger one
repeats them with noise in dense vectors and weights, and with few token vectors, since late interaction is
taken off.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import uvloop

from benchmarks.serving.cranfield import build, texts_of
from benchmarks.serving.server import Server, serving
from benchmarks.serving.timed_command import CLOCKS
from tercet.models.loader import load_encoder
from tercet.service.app import create_app
from tercet.service.search.pipeline import SearchPipeline
from tercet.service.search.query import SearchQuery, SearchScope
from tercet.service.serving import server_for
from tercet.service.settings.settings import Settings

LARGE = 50_000  # documents
QUICK_TEXTS, QUICK_LARGE = 300, 5_000
WARM_UP = 30
ADDED_MS = 1.5
PLAIN = {"Accept-Encoding": "identity"}  # compression is the client's choice


@dataclass(slots=True)
class Turns:
    """Processor milliseconds of each block of searches: all, sessions, late interaction."""

    blocks: list[tuple[float, float, float]] = field(default_factory=list)

    def figures(self) -> dict[str, float]:
        """Medians over the blocks, a search."""
        total, session, late = (statistics.median(column) for column in zip(*self.blocks, strict=True))
        rest = statistics.median(whole - run - scored for whole, run, scored in self.blocks)
        names = ("total_ms", "session_ms", "late_interaction_ms", "rest_ms")
        return {
            name: round(value, 3) for name, value in zip(names, (total, session, late, rest), strict=True)
        }


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures of all parts, and the bars that were missed."""
    figures: dict[str, Any] = {}
    missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tercet-latency-") as scratch:
        data = Path(scratch) / "data"
        encoder = load_encoder("minilm-m3")
        texts, queries = texts_of("corpus"), texts_of("queries")
        names = (
            build(data / "collections", encoder, texts[:QUICK_TEXTS], QUICK_LARGE)
            if quick
            else build(data / "collections", encoder, texts, LARGE)
        )
        with timed_server(data, Path(scratch) / "clocks") as (server, clocks):
            for name in names:
                rounds, searches = (2, 30) if quick else (10, 60)
                figures[name] = processor_time(server, clocks, name, queries, rounds, searches)
        figures["wall"] = wall = wall_time(data, names[0], queries, 60 if quick else 500)
    if wall["added_ms"] > ADDED_MS:
        missed.append(f"HTTP adds {wall['added_ms']} ms, the bar is {ADDED_MS}")
    _print(figures)
    return figures, missed


@contextmanager
def timed_server(data: Path, clocks: Path) -> Iterator[tuple[Server, Path]]:
    """A server, and the file of its clocks."""
    clocks.write_bytes(CLOCKS.pack(0, 0))
    program = [str(Path(__file__).with_name("timed_command.py")), str(clocks), "serve"]
    with serving(data, program=program, threads=1, log_level="info") as server:
        yield server, clocks


def processor_time(
    server: Server, clocks: Path, name: str, queries: Sequence[str], rounds: int, searches: int
) -> dict[str, float]:
    """Milliseconds a search of a collection, in turns of so many searches."""
    turns = Turns()
    with httpx.Client(base_url=server.url, headers=PLAIN, timeout=60) as client:
        for turn in range(rounds + 1):  # the first warms up
            before = server.cpu_seconds, *CLOCKS.unpack(clocks.read_bytes())
            for number in range(searches):
                query = queries[(turn * searches + number) % len(queries)]
                client.post("/search", json={"collection": name, "query": query}).raise_for_status()
            after = server.cpu_seconds, *CLOCKS.unpack(clocks.read_bytes())
            if turn:
                spent = [1000 * (b - a) / searches for a, b in zip(before, after, strict=True)]
                turns.blocks.append((spent[0], spent[1], spent[2]))
    return turns.figures()


def wall_time(data: Path, name: str, queries: Sequence[str], requests: int) -> dict[str, float]:
    """Milliseconds at the median of a search over HTTP and in Python.

    The kinds alternate, so that whatever else the machine does hits both.
    """
    seconds: dict[str, list[float]] = {"python": [], "http": []}
    with ExitStack() as running:
        settings = Settings.model_validate({"data": data, "port": 0})
        url, pipeline, loop = running.enter_context(serving_here(settings))
        client = running.enter_context(closing(connection(url)))
        for number in range(WARM_UP + requests):
            query = queries[number % len(queries)]
            found = {
                "python": asyncio.run_coroutine_threadsafe(in_python(pipeline, name, query), loop).result()
            }
            started = time.perf_counter()
            search_over_http(client, name, query)
            found["http"] = time.perf_counter() - started
            if number >= WARM_UP:
                for kind, value in found.items():
                    seconds[kind].append(value)
    figures = {f"{kind}_ms": round(statistics.median(values) * 1000, 3) for kind, values in seconds.items()}
    return {**figures, "added_ms": round(figures["http_ms"] - figures["python_ms"], 3)}


def connection(url: str) -> http.client.HTTPConnection:
    """A kept connection of the standard library: its own work is small beside the server's."""
    client = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    client.connect()
    client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def search_over_http(client: http.client.HTTPConnection, name: str, query: str) -> None:
    """Sends `POST /search` and reads the whole answer."""
    body = json.dumps({"collection": name, "query": query})
    client.request("POST", "/search", body, {"Content-Type": "application/json"})
    client.getresponse().read()


async def in_python(pipeline: SearchPipeline, name: str, query: str) -> float:
    """Seconds of a search on the server's event loop, without HTTP."""
    started = time.perf_counter()
    await pipeline.search(SearchScope(name), SearchQuery(query))
    return time.perf_counter() - started


@contextmanager
def serving_here(
    settings: Settings,
) -> Iterator[tuple[str, SearchPipeline, asyncio.AbstractEventLoop]]:
    """A real server in a thread of this process: its address, its pipeline, and the event loop of both."""
    app = create_app(settings)
    server = server_for(app, settings)
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(),))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.05)
        host, port = server.servers[0].sockets[0].getsockname()[:2]
        url = f"http://{host}:{port}"
        while httpx.get(f"{url}/ready").status_code != httpx.codes.OK:
            time.sleep(0.05)
        yield url, app.state.runtime.pipeline, loop
    finally:
        server.should_exit = True
        thread.join()
        loop.close()


def _print(figures: dict[str, Any]) -> None:
    print(f"{'collection':20s} {'all':>8s} {'session':>8s} {'late':>8s} {'rest':>8s}  ms of CPU")
    for name, found in figures.items():
        if name != "wall":
            print(f"{name:20s} " + " ".join(f"{value:8.2f}" for value in found.values()))
    for name, value in figures["wall"].items():
        print(f"{name:20s} {value:8.2f}")
