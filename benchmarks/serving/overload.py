"""More work than the server can do: searches, and /embed of one and of 32 texts.

In several shapes: connections that are kept and requests that tell how long they have, as good clients do;
a new connection for each request, without such a header; and the same with another process that
uses one core all the time.

Capacity is measured first, with clients that wait for their answers; then requests come at 0.5, 2, 4 and 10
times that rate at random moments, whether or not others were answered. An answer counts (goodput) where it is
200 within GOOD_SECONDS.

`Retry-After` is checked against what happens. When a request learnt at second s that it was refused, with r
seconds to wait, and the next of its kind that was taken came at second a, then r should be within a factor of
two of a - s. The header has whole seconds, so both count as one at least. It is checked when the load ends,
and behind one large request, where the promise is long.

The requests come from a process of its own, on the same machine as the server, with a higher priority: the
column `generator` is its share of one core.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving.generator import (
    OK,
    Due,
    Outcome,
    Sent,
    generator,
    get,
    post,
    saturate,
    send,
    send_then_probe,
)
from benchmarks.serving.server import DEMO, Server, build, demo_queries, demo_texts, serving
from tercet.models.checkpoint import ENGLISH

LOADS = (0.5, 2.0, 4.0, 10.0)
SHARES = {"search": 12, "embed 1": 5, "embed 32": 3}  # of 20 requests
CLIENTS = 12
DEADLINE_SECONDS = 5.0
PROMISED_SECONDS = 2.0  # the setting max_wait_seconds
PROBES_PER_SECOND = 5.0
OPERATION_SECONDS = 0.1
NICENESS = 5  # of all but the clients, which stand for those on other machines
GOOD_SECONDS = 2.0
LEAST_GOODPUT = 0.9  # above the capacity, of the closed loop's
PROBE_PAUSE_SECONDS = 0.05
TOO_MANY = 429
LARGE_TEXTS = 1024
MEMORY_GROWTH_BYTES = 32 << 20
BINARY = "Accept: application/x-safetensors"

Run = Callable[..., Any]
Requests = Mapping[str, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class Shape:
    """How clients behave. neighbour: whether another process uses a core meanwhile."""

    fresh: bool = False
    tells_deadline: bool = True
    neighbour: bool = False


SHAPES = {
    "kept connections": Shape(),
    "new connections, no deadline": Shape(fresh=True, tells_deadline=False),
    "beside a busy process": Shape(fresh=True, tells_deadline=False, neighbour=True),
}


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures of each shape at each load, and the bars missed."""
    seconds = 8.0 if quick else 20.0
    with (
        tempfile.TemporaryDirectory(prefix="tercet-overload-") as folder,
        generator() as run,
    ):
        build(Path(folder), "demo", DEMO / "corpus.jsonl", "--checkpoint", ENGLISH)
        with serving(Path(folder), max_wait_seconds=PROMISED_SECONDS, niceness=NICENESS) as server:
            port = int(server.url.rpartition(":")[2])
            told_requests, plain_requests = (
                all_requests(tells_deadline=True),
                all_requests(tells_deadline=False),
            )
            run(saturate, port, mixed(told_requests), CLIENTS, 3.0)  # warm-up
            shapes = {}
            for name, shape in SHAPES.items():
                requests = told_requests if shape.tells_deadline else plain_requests
                with busy_neighbour() if shape.neighbour else nullcontext():
                    closed: Sent = run(saturate, port, mixed(requests), CLIENTS, seconds, shape.fresh)
                    capacity = len(good(closed)) / seconds
                    loads = {
                        f"{load:g}": offered(
                            run, server, port, requests, load * capacity, seconds, fresh=shape.fresh
                        )
                        for load in LOADS
                    }
                shapes[name] = {"capacity_per_second": round(capacity, 2), "loads": loads}
                print_table(name, loads, capacity)
            capacity = shapes["kept connections"]["capacity_per_second"]
            told = {
                **told_at_the_end(run, port, told_requests, capacity),
                "behind a large one": told_behind_large(run, port),
            }
            memory = memory_over(run, server, port, told_requests, 4 * capacity, 30.0 if quick else 120.0)
    figures = {
        "promised_wait_seconds": PROMISED_SECONDS,
        "good_seconds": GOOD_SECONDS,
        "shapes": shapes,
        "retry_after": told,
        "memory": memory,
    }
    return figures, missed(figures)


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """Another process that computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def good(sent: Sent) -> list[Outcome]:
    """The answers that came in time."""
    return [
        each
        for each in sent.outcomes
        if each.kind in SHARES and each.status == OK and each.seconds <= GOOD_SECONDS
    ]


def missed(figures: Mapping[str, Any]) -> list[str]:
    """The bars that the figures do not reach."""
    misses = []
    for name, shape in figures["shapes"].items():
        for load, each in shape["loads"].items():
            where = f"{name}, {load}x"
            least = LEAST_GOODPUT * min(each["offered_per_second"], shape["capacity_per_second"])
            if each["goodput_per_second"] < least:
                misses.append(f"{where}: goodput {each['goodput_per_second']}/s, the bar is {least:.1f}")
            others = {key: count for key, count in each["statuses"].items() if key not in ("200", "429")}
            if others:
                misses.append(f"{where}: other statuses {others}")
            slowest = {path: each[f"{path}_max_ms"] for path in ("health", "ready")}
            misses += [
                f"{where}: /{path} takes up to {longest} ms"
                for path, longest in slowest.items()
                if longest > 1000 * OPERATION_SECONDS
            ]
    for kind, told in figures["retry_after"].items():
        misses += [
            f"Retry-After ({kind}): told {r} s, taken after {a} s" for r, a in told if not is_right(r, a)
        ]
    if figures["memory"]["growth_mb"] * 2**20 > MEMORY_GROWTH_BYTES:
        misses.append(f"memory grew by {figures['memory']['growth_mb']} MiB")
    return misses


def is_right(told_seconds: float, taken_seconds: float) -> bool:
    """Whether the two are within a factor of two, in whole seconds of which there is one at least."""
    told, taken = max(1.0, told_seconds), max(1.0, taken_seconds)
    return taken / 2 <= told <= 2 * taken


def all_requests(*, tells_deadline: bool) -> dict[str, list[bytes]]:
    """The bytes of many requests of each kind."""
    texts = demo_texts()
    timeout = [f"X-Request-Timeout: {DEADLINE_SECONDS}"] if tells_deadline else []

    def embed(inputs: list[str]) -> bytes:
        body = json.dumps({"inputs": inputs, "outputs": ["dense", "sparse"]}).encode()
        return post("/embed", body, BINARY, *timeout)

    searches = [{"collection": "demo", "query": query} for query in demo_queries()]
    pick = random.Random(1)
    return {
        "search": [post("/search", json.dumps(each).encode(), *timeout) for each in searches],
        "embed 1": [embed([text]) for text in texts],
        "embed 32": [embed(pick.sample(texts, 32)) for _ in range(64)],
    }


def mixed(requests: Requests, count: int = 2000) -> list[tuple[str, bytes]]:
    """Requests of all kinds, by their shares, in a random order that is always the same."""
    pick = random.Random(2)
    kinds = pick.choices(list(SHARES), list(SHARES.values()), k=count)
    return [(kind, pick.choice(requests[kind])) for kind in kinds]


def schedule(requests: Requests, rate: float, seconds: float, *, fresh: bool = False) -> list[Due]:
    """Requests at random moments, so many in a second on average, with probes of operations among them.

    fresh: each on a new connection.
    """
    moments = random.Random(3)
    due, moment = list[Due](), 0.0
    for kind, content in mixed(requests, int(2 * rate * seconds) + 100):
        moment += moments.expovariate(rate)
        if moment > seconds:
            break
        due.append(Due(moment, kind, content, fresh))
    due += [
        Due(number / PROBES_PER_SECOND, path, get(f"/{path}"), fresh)
        for number in range(int(seconds * PROBES_PER_SECOND))
        for path in ("health", "ready")
    ]
    return sorted(due, key=lambda each: each.seconds)


def offered(
    run: Run,
    server: Server,
    port: int,
    requests: Requests,
    rate: float,
    seconds: float,
    *,
    fresh: bool,
) -> dict[str, Any]:
    """What a server does with so many requests in a second."""
    before = server.cpu_seconds
    sent: Sent = run(send, port, schedule(requests, rate, seconds, fresh=fresh))
    time.sleep(PROMISED_SECONDS)  # nothing of this load is left for the next
    load = [each for each in sent.outcomes if each.kind in SHARES]
    answered = good(sent)
    refused = [each.seconds for each in load if each.status == TOO_MANY]
    searches = times(load, "search")
    statuses = sorted({each.status for each in sent.outcomes})
    return {
        "offered_per_second": round(len(load) / seconds, 2),
        "goodput_per_second": round(len(answered) / seconds, 2),
        "goodput_by_kind": {
            kind: round(sum(each.kind == kind for each in answered) / seconds, 2) for kind in SHARES
        },
        "statuses": {
            str(status): sum(each.status == status for each in sent.outcomes) for status in statuses
        },
        "refused_p99_ms": milliseconds(refused, 99),
        "refused_max_ms": milliseconds(refused, 100),
        "search_p50_ms": milliseconds(searches, 50),
        "search_p99_ms": milliseconds(searches, 99),
        **{f"{path}_p99_ms": milliseconds(times(sent.outcomes, path), 99) for path in ("health", "ready")},
        **{f"{path}_max_ms": milliseconds(times(sent.outcomes, path), 100) for path in ("health", "ready")},
        "server_cores": round((server.cpu_seconds - before) / seconds, 2),
        "generator_cores": round(sent.cpu_seconds / seconds, 2),
        "generator_late_ms": round(sent.late_seconds * 1000, 1),
    }


def told_at_the_end(
    run: Run, port: int, requests: Requests, capacity: float
) -> dict[str, list[tuple[int, float]]]:
    """By kind: what was told in the last second of four times the capacity, and what happened then."""
    seconds = 5.0
    load = schedule(requests, 4 * capacity, seconds)
    probes = [(kind, requests[kind][0]) for kind in SHARES]
    sent: Sent = run(send_then_probe, port, load, probes, PROBE_PAUSE_SECONDS)
    return {kind: promises(sent.outcomes, kind, seconds - 1) for kind in SHARES}


def told_behind_large(run: Run, port: int) -> list[tuple[int, float]]:
    """What large requests are told behind one that an idle server takes, and what happens."""
    texts = list(islice(cycle(demo_texts()), LARGE_TEXTS))
    content = post("/embed", json.dumps({"inputs": texts, "outputs": ["dense"]}).encode(), BINARY)
    begun = [Due(0.0, "first", content), Due(2.0, "health", get("/health"))]  # then the probes
    sent: Sent = run(send_then_probe, port, begun, [("large", content)], 0.5)
    return promises(sent.outcomes, "large", 0.0)


def promises(outcomes: Sequence[Outcome], kind: str, since: float) -> list[tuple[int, float]]:
    """Seconds told, and those until the next of its kind was taken, of all refused since a moment."""
    mine = sorted((each for each in outcomes if each.kind == kind), key=lambda each: each.due)
    told = []
    for number, each in enumerate(mine):
        if each.due >= since and each.retry_after is not None:
            taken = next(later.due for later in mine[number:] if later.status == OK)
            told.append((each.retry_after, round(max(0.0, taken - each.due - each.seconds), 2)))
    return told


def memory_over(
    run: Run, server: Server, port: int, requests: Requests, rate: float, seconds: float
) -> dict[str, Any]:
    """Memory of the server under a load, in the first and in the last tenth of the time."""
    samples = list[int]()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            samples.append(server.memory_bytes)

    watcher = threading.Thread(target=watch)
    watcher.start()
    run(send, port, schedule(requests, rate, seconds))
    done.set()
    watcher.join()
    tenth = max(1, len(samples) // 10)
    early, late = max(samples[:tenth]), max(samples[-tenth:])
    return {
        "seconds": seconds,
        "early_mb": round(early / 2**20, 1),
        "late_mb": round(late / 2**20, 1),
        "growth_mb": round((late - early) / 2**20, 1),
    }


def times(outcomes: Sequence[Outcome], kind: str) -> list[float]:
    """Seconds of the requests of a kind that were answered 200."""
    return [each.seconds for each in outcomes if each.kind == kind and each.status == OK]


def percentile(seconds: Sequence[float], percent: float) -> float:
    """Of no request at all it is 0."""
    return float(np.percentile(seconds, percent)) if seconds else 0.0


def milliseconds(seconds: Sequence[float], percent: float) -> float:
    """A percentile in milliseconds."""
    return round(1000 * percentile(seconds, percent), 1)


def print_table(name: str, loads: Mapping[str, Mapping[str, Any]], capacity: float) -> None:
    """One line for each load."""
    print(f"{name}: capacity {capacity:.1f} requests/s (closed loop, {CLIENTS} clients)")
    print("load  offered/s  good/s  refused, max ms  search p50, p99 ms  health, ready max ms  server cores")
    for load, each in loads.items():
        print(
            f"{load:>4}  {each['offered_per_second']:9.1f}  {each['goodput_per_second']:6.1f}"
            f"  {each['statuses'].get('429', 0):7} {each['refused_max_ms']:7.0f}"
            f"  {each['search_p50_ms']:9.0f} {each['search_p99_ms']:8.0f}"
            f"  {each['health_max_ms']:10.1f} {each['ready_max_ms']:9.1f}  {each['server_cores']:12.2f}"
        )
