"""100,000 random and hostile requests to one server: none fails or hangs, one error shape, steady memory.

They are made from requests that schemathesis draws from the server's description, fitting and breaking it,
and from a list of our own.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from serving.exchange import Connection, fault_of
from serving.hostile import Hostile, Request
from serving.server import DEMO, Server, build, serving

REQUESTS, QUICK_REQUESTS = 100_000, 3_000
EXAMPLES, QUICK_EXAMPLES = 25, 8  # drawn from the description for each operation, fitting and breaking it
CONNECTIONS = 8
SEED = 20261122
HANG_SECONDS = 20.0
GROWTH_BYTES = CONNECTIONS * (16 << 20)  # each may bring a body of half that size, which is joined
DRIFT_BYTES = 16 << 20
SAMPLE_EVERY = 250  # requests between two looks at the server's memory
SHOWN, SHOWN_BYTES = 10, 600


@dataclass(slots=True)
class Tally:
    """What happened so far."""

    statuses: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures, and the bars that were missed."""
    count = QUICK_REQUESTS if quick else REQUESTS
    with tempfile.TemporaryDirectory(prefix="tercet-fuzz-") as folder:
        data = Path(folder)
        build(data, "demo", DEMO / "corpus.jsonl", "--field", "lang:keyword", "--field", "topic:keyword")
        with serving(data, head_timeout_seconds=1, body_timeout_seconds=1) as server:
            drawn = described(server.url, QUICK_EXAMPLES if quick else EXAMPLES)
            hostile = Hostile(SEED, drawn)
            started = time.monotonic()
            tally = asyncio.run(fuzz(server, (hostile.request() for _ in range(count))))
            seconds = time.monotonic() - started
            alive = answers_searches(server.url)
    growth, drift = growth_and_drift(tally.memory_bytes)
    missed = list(tally.faults[:SHOWN])
    if not alive:
        missed.append("the server answers no search afterwards")
    if growth > GROWTH_BYTES:
        missed.append(f"memory grew by {growth >> 20} MiB; the bar is {GROWTH_BYTES >> 20}")
    if drift > DRIFT_BYTES:
        missed.append(f"memory still grew by {drift >> 20} MiB in the end; the bar is {DRIFT_BYTES >> 20}")
    figures = {
        "requests": count,
        "drawn_from_description": len(drawn),
        "faults": len(tally.faults),
        "ended_without_answer": tally.unanswered,
        "statuses": {str(status): number for status, number in sorted(tally.statuses.items())},
        "memory_growth_mib": round(growth / 2**20, 1),
        "memory_drift_mib": round(drift / 2**20, 1),
        "seconds": round(seconds, 1),
    }
    return figures, missed


def growth_and_drift(memory_bytes: list[int]) -> tuple[int, int]:
    """Bytes by which memory rose at most, and at the median between the second quarter and the last."""
    quarter = len(memory_bytes) // 4
    second, last = memory_bytes[quarter : 2 * quarter], memory_bytes[-quarter:]
    return max(memory_bytes) - memory_bytes[0], int(statistics.median(last) - statistics.median(second))


def described(url: str, examples: int) -> list[Request]:
    """Requests drawn from the server's description of itself."""
    description = httpx.get(f"{url}/openapi.json").json()
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


async def fuzz(server: Server, hostile: Iterator[Request]) -> Tally:
    """Sends the requests over some connections at a time, and judges every answer."""
    tally = Tally()
    host, _, port = server.url.removeprefix("http://").partition(":")

    async def send_some() -> None:
        connection = Connection(host, int(port), HANG_SECONDS)
        for request in hostile:
            await judge(connection, request, tally)
            done = tally.statuses.total() + tally.unanswered
            if done % SAMPLE_EVERY == 0:
                tally.memory_bytes.append(server.memory_bytes)
        await connection.close()

    await asyncio.gather(*(send_some() for _ in range(CONNECTIONS)))
    tally.memory_bytes.append(server.memory_bytes)
    return tally


async def judge(connection: Connection, request: Request, tally: Tally) -> None:
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
        fault = fault_of(answer, has_body=has_body)
    if fault is not None:
        tally.faults.append(f"{fault} to {sent[:SHOWN_BYTES]!r}")


def answers_searches(url: str) -> bool:
    """Whether the server still does what it is for."""
    answer = httpx.post(f"{url}/search", json={"collection": "demo", "query": "tea"}, timeout=HANG_SECONDS)
    return answer.status_code == httpx.codes.OK and bool(answer.json()["hits"])
