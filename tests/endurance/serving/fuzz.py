"""100,000 random and hostile requests to all routes of one server: none fails, hangs or holds its event loop.

They are made from requests that schemathesis draws from the server's description, fitting and breaking it,
from a list of our own, and from the largest bodies that the description allows and does not. Errors have the
shape of their path, and memory is steady.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from benchmarks.serving.server import DEMO, Server, build, serving
from tests.endurance.serving.exchange import Connection, fault_of
from tests.endurance.serving.extremes import Description, Extreme
from tests.endurance.serving.hostile import Hostile, Request

REQUESTS, QUICK_REQUESTS = 100_000, 3_000
EXAMPLES, QUICK_EXAMPLES = 25, 8  # drawn from the description for each operation, fitting and breaking it
CONNECTIONS = 8
SEED = 20261122
HANG_SECONDS = 75.0 * CONNECTIONS  # for the most texts that a request may have, on two old cores
GROWTH_BYTES = CONNECTIONS * (16 << 20)  # each may bring a body of half that size, which is joined
DRIFT_BYTES = 16 << 20
FILLED_WORDS, FILLED_TOKENS = (1, 8, 64, 250), 16_000
SAMPLE_EVERY = 100  # requests between two looks at the server
SHOWN, SHOWN_BYTES = 10, 600
HELD_MS = 50.0  # of processor time
SUSPECTS = 500  # requests sent again, alone
TRIES = 4
LARGEST_EVERY = 100  # requests to one of the largest
WATCHED = Path(__file__).with_name("watched.py")


@dataclass(slots=True)
class Tally:
    """What happened so far.

    recent: the requests since the last look at the server; held_ms, busy_ms: for each look the most since the
    one before; suspects: the requests meanwhile, where that was too much.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[tuple[str, int]] = field(default_factory=Counter)
    recent: list[Request] = field(default_factory=list)
    held_ms: list[float] = field(default_factory=list)
    busy_ms: list[float] = field(default_factory=list)
    suspects: list[Request] = field(default_factory=list)
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures, and the bars that were missed."""
    count = QUICK_REQUESTS if quick else REQUESTS
    with tempfile.TemporaryDirectory(prefix="tercet-fuzz-") as folder:
        data = Path(folder)
        build(data, "demo", DEMO / "corpus.jsonl", "--field", "lang:keyword", "--field", "topic:keyword")
        with serving(data, program=[str(WATCHED)], head_timeout_seconds=1, body_timeout_seconds=1) as server:
            description = httpx.get(f"{server.url}/openapi.json").json()
            drawn = described(description, QUICK_EXAMPLES if quick else EXAMPLES)
            requests = mixed(Hostile(SEED, drawn), largest(server.url, description), count)
            fill(server.url)
            httpx.get(f"{server.url}/stopped")  # what the start took is not asked for
            started = time.monotonic()
            tally = asyncio.run(fuzz(server, requests, Routes(description)))
            seconds = time.monotonic() - started
            held, by = held_alone(server.url, tally.suspects)
            alive = answers_searches(server.url)
    print_table(tally)
    growth, drift = growth_and_drift(tally.memory_bytes)
    missed = list(tally.faults[:SHOWN])
    if not alive:
        missed.append("the server answers no search afterwards")
    if growth > GROWTH_BYTES:
        missed.append(f"memory grew by {growth >> 20} MiB; the bar is {GROWTH_BYTES >> 20}")
    if drift > DRIFT_BYTES:
        missed.append(f"memory still grew by {drift >> 20} MiB in the end; the bar is {DRIFT_BYTES >> 20}")
    if held > HELD_MS:
        missed.append(f"the loop was held for {held} ms; the bar is {HELD_MS:g}: {by}")
    if max(tally.busy_ms) > HELD_MS:
        missed.append(f"the loop's own work took {max(tally.busy_ms)} ms; the bar is {HELD_MS:g}")
    figures = {
        "requests": count,
        "drawn_from_description": len(drawn),
        "faults": len(tally.faults),
        "ended_without_answer": tally.unanswered,
        "statuses": {str(status): number for status, number in sorted(tally.statuses.items())},
        "loop_held_ms": held if tally.suspects else max(tally.held_ms),
        "loop_held_together_ms": max(tally.held_ms),
        "loop_busy_ms": max(tally.busy_ms),
        "memory_growth_mib": round(growth / 2**20, 1),
        "memory_drift_mib": round(drift / 2**20, 1),
        "seconds": round(seconds, 1),
    }
    return figures, missed


def fill(url: str) -> None:
    """Has the encoder take the memory of its largest batches, of short texts and of long, which it keeps."""
    for words in FILLED_WORDS:
        texts = ["tea " * words] * min(1_000, FILLED_TOKENS // words)
        httpx.post(f"{url}/embed", json={"inputs": texts}, timeout=HANG_SECONDS).raise_for_status()


def growth_and_drift(memory_bytes: list[int]) -> tuple[int, int]:
    """Bytes by which memory rose at most, and at the median between the second quarter and the last."""
    quarter = len(memory_bytes) // 4
    second, last = memory_bytes[quarter : 2 * quarter], memory_bytes[-quarter:]
    return max(memory_bytes) - memory_bytes[0], int(statistics.median(last) - statistics.median(second))


class Routes:
    """Tells which route of the description a request goes to."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        # Of two that a path fits, the one that names more of it.
        paths = sorted(description["paths"], key=lambda path: (path.count("{"), -len(path)))
        self._known = {(method, path) for path in paths for method in description["paths"][path]}
        self._patterns = [(path, re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(path)))) for path in paths]

    def of(self, request: Request) -> str:
        """Method and path of the route, or what stands for all that are none."""
        path = request.target.partition(b"?")[0].decode("latin-1")
        found = next((name for name, pattern in self._patterns if pattern.fullmatch(path)), None)
        method = request.method.decode("latin-1")
        return f"{method} {found}" if (method.lower(), found) in self._known else "(other)"


def print_table(tally: Tally) -> None:
    """How many requests went to each route, and what was answered."""
    print(f"{'route':62} {'requests':>8} {'2xx':>6} {'4xx':>6} {'5xx':>4}")
    for route in sorted({route for route, _ in tally.routes}, key=lambda route: route.split()[::-1]):
        kinds = Counter[int]()
        for (name, status), number in tally.routes.items():
            kinds[status // 100] += number * (name == route)
        print(f"{route:62.62} {kinds.total():8} {kinds[2]:6} {kinds[4]:6} {kinds[5]:4}")


def largest(url: str, description: Mapping[str, Any]) -> Iterator[Request]:
    """The largest bodies, one to each route in turn, without end.

    The collection `demo` stays, since later requests search it.
    """
    limits = httpx.get(f"{url}/info").json()["limits"]
    lengths = sorted({limits["texts"], limits["documents"], limits["write_documents"]})
    described = Description(description)
    routes = [route for route in described.operations if route != ("DELETE", "/collections/{name}")]
    turns = [
        # Each from another of its bodies on, or the heaviest of all routes would come at a time.
        itertools.islice(
            _again(partial(described.extremes, *route, limits["body_bytes"], lengths)), place, None
        )
        for place, route in enumerate(routes)
    ]
    for turn in itertools.cycle(turns):
        extreme = next(turn)
        yield Request(extreme.method.encode(), extreme.path.encode(), body=extreme.body)


def _again(make: Callable[[], Iterator[Extreme]]) -> Iterator[Extreme]:
    while True:
        yield from make()


def mixed(hostile: Hostile, largest: Iterator[Request], count: int) -> Iterator[Request]:
    """So many requests, some of them of the largest."""
    for place in range(count):
        yield next(largest) if place % LARGEST_EVERY == 0 else hostile.request()


def described(description: Mapping[str, Any], examples: int) -> list[Request]:
    """Requests drawn from the server's description of itself."""
    schema = schemathesis.openapi.from_dict(description)
    drawn: list[Request] = []
    for path, methods in description["paths"].items():
        for method, mode in itertools.product(methods, GenerationMode):
            if (
                mode is GenerationMode.NEGATIVE
                and "requestBody" not in methods[method]
                and "{name}" not in path
            ):
                continue  # the description says nothing that could be broken
            strategy = schema[path][method].as_strategy(generation_mode=mode)

            @given(case=strategy)
            @settings(
                max_examples=examples,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def keep(case: Any) -> None:
                drawn.append(request_of(case))

            keep()
    return drawn


def request_of(case: Any) -> Request:
    """What schemathesis drew, as bytes; it knows no collection, so searches are turned to ours."""
    if case.path == "/search" and isinstance(case.body, dict) and "collection" in case.body:
        case.body["collection"] = "demo"
    prepared = requests.Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
    body = prepared.body or b""
    kept = {name.encode(): value for name, value in prepared.headers.items() if name == "Content-Type"}
    return Request(
        str(prepared.method).encode(),
        prepared.path_url.encode(),
        tuple((name, value.encode() if isinstance(value, str) else value) for name, value in kept.items()),
        body.encode() if isinstance(body, str) else body,
    )


async def fuzz(server: Server, hostile: Iterator[Request], routes: Routes) -> Tally:
    """Sends the requests over some connections at a time, and judges every answer."""
    tally = Tally()
    host, _, port = server.url.removeprefix("http://").partition(":")

    async def send_some() -> None:
        connection = Connection(host, int(port), HANG_SECONDS)
        for request in hostile:
            tally.recent.append(request)
            await judge(connection, request, routes.of(request), tally)
            done = tally.statuses.total() + tally.unanswered
            if done % SAMPLE_EVERY == 0:
                await look(connection, server, tally)
        await connection.close()

    await asyncio.gather(*(send_some() for _ in range(CONNECTIONS)))
    await look(Connection(host, int(port), HANG_SECONDS), server, tally)
    return tally


async def look(connection: Connection, server: Server, tally: Tally) -> None:
    """Notes the server's memory, and for how long its loop was held since the last look."""
    tally.memory_bytes.append(server.memory_bytes)
    asked = Request(b"GET", b"/stopped", ())
    answer = await connection.exchange(asked.to_bytes(), whole=True, has_body=True)
    if answer is not None:
        stopped = json.loads(answer.body)
        tally.held_ms.append(stopped["held_ms"])
        tally.busy_ms.append(stopped["busy_ms"])
        if stopped["held_ms"] > HELD_MS and len(tally.suspects) < SUSPECTS:
            tally.suspects += tally.recent
        tally.recent.clear()


def held_alone(url: str, suspects: list[Request]) -> tuple[float, str]:
    """The longest for which one of the requests holds the loop when it is alone, in ms, and its beginning.

    The least of several tries: together with others, and on a busy machine, a request that holds the
    interpreter for a moment is waited for as long as it waits for a processor itself.
    """
    worst = (0.0, "")
    host, _, port = url.removeprefix("http://").partition(":")

    async def send(request: Request) -> None:
        connection = Connection(host, int(port), HANG_SECONDS)
        with suppress(TimeoutError):
            await connection.exchange(request.to_bytes(), whole=False, has_body=request.method != b"HEAD")
        await connection.close()

    for request in suspects:
        httpx.get(f"{url}/stopped")
        least = HELD_MS + 1
        for _ in range(TRIES):
            if least > HELD_MS:
                asyncio.run(send(request))
                least = min(least, float(httpx.get(f"{url}/stopped").json()["held_ms"]))
        worst = max(worst, (least, repr(request.to_bytes()[:SHOWN_BYTES])))
    return worst


async def judge(connection: Connection, request: Request, route: str, tally: Tally) -> None:
    """Sends one request; notes its status and what is wrong with the answer."""
    has_body = request.method != b"HEAD"
    sent = request.to_bytes()
    try:
        answer = await connection.exchange(sent, whole=request.whole, has_body=has_body)
    except TimeoutError:
        await connection.close()
        tally.unanswered += 1
        tally.faults.append(f"no answer within {HANG_SECONDS:g} s to {sent[:SHOWN_BYTES]!r}")
        return
    if answer is None:
        tally.unanswered += 1
        fault = "the connection ended without an answer" if request.whole else None
    else:
        tally.statuses[answer.status] += 1
        tally.routes[route, answer.status] += 1
        path = None if request.wire else request.target.partition(b"?")[0].decode("latin-1")
        fault = fault_of(answer, path, has_body=has_body)
    if fault is not None:
        tally.faults.append(f"{fault} to {sent[:SHOWN_BYTES]!r}")


def answers_searches(url: str) -> bool:
    """Whether the server still does what it is for."""
    answer = httpx.post(f"{url}/search", json={"collection": "demo", "query": "tea"}, timeout=HANG_SECONDS)
    return answer.status_code == httpx.codes.OK and bool(answer.json()["hits"])
