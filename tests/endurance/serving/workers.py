"""Faults of encoder workers under a light load: who else fails, and how soon all is well again.

Real `tercet encoder` and `tercet serve` processes, with a proxy before each worker that breaks what passes.
A request is an other one where no fault was put into it, and where a worker was there while it was under way:
a second after a worker's return is allowed as recovery.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from benchmarks.serving.server import DEMO, Server, build, demo_queries, free_port, serving
from tests.endurance.serving.fault_proxy import FaultProxy

REQUESTS_PER_SECOND = 10.0
ALLOWED_RECOVERY_SECONDS = 1.0
MARKER = "marked to fail"


@dataclass(frozen=True, slots=True)
class Answer:
    """One request of the load: when it began, how long it took, and its status, 0 for none."""

    began: float
    seconds: float
    status: int


@dataclass(slots=True)
class Load:
    """Searches at a steady rate, whether or not earlier ones were answered."""

    client: httpx.AsyncClient
    answers: list[Answer] = field(default_factory=list)

    async def search(self, query: str) -> Answer:
        """One search."""
        began = time.monotonic()
        try:
            response = await self.client.post("/search", json={"collection": "demo", "query": query})
            status = response.status_code
        except httpx.HTTPError:
            status = 0
        answer = Answer(began, time.monotonic() - began, status)
        self.answers.append(answer)
        return answer

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Sends searches for as long as the block lasts, and waits for their answers."""
        tasks: list[asyncio.Task[Answer]] = []

        async def send() -> None:
            queries = demo_queries()
            while True:
                tasks.append(asyncio.create_task(self.search(queries[len(tasks) % len(queries)])))
                await asyncio.sleep(1 / REQUESTS_PER_SECOND)

        sender = asyncio.create_task(send())
        try:
            yield
        finally:
            sender.cancel()
            await asyncio.gather(*tasks)


@dataclass(slots=True)
class Stage:
    """The servers of one run: workers, each behind a proxy, and a search server over the proxies."""

    folder: Path
    workers: list[Server]
    proxies: list[FaultProxy]
    load: Load
    stack: ExitStack
    rest_seconds: float

    async def restart(self, number: int) -> None:
        """Starts a worker again at its address; returns when it is ready."""
        port = int(self.workers[number].url.rpartition(":")[2])
        started = worker_at(self.folder, port)
        self.workers[number] = await asyncio.to_thread(self.stack.enter_context, started)


Fault = Callable[[Stage], Awaitable[tuple[float, float] | None]]
"""Puts a fault in. Returns when the worker went and when it was back, or None where it was always there."""


async def resets(stage: Stage) -> None:
    for _ in range(5):
        stage.proxies[0].resets += 1
        await asyncio.sleep(0.5)


async def errors(stage: Stage) -> None:
    """Every worker fails on a marked request, and on no other."""
    for proxy in stage.proxies:
        proxy.marker = MARKER.encode()
    for _ in range(5):
        marked = await Load(stage.load.client).search(MARKER)
        if marked.status != httpx.codes.SERVICE_UNAVAILABLE:
            raise RuntimeError(f"the marked request was answered {marked.status}")
        await asyncio.sleep(0.5)


async def hang(stage: Stage) -> tuple[float, float]:
    began = time.monotonic()
    stage.proxies[0].passing.clear()
    await asyncio.sleep(2 * stage.rest_seconds)
    stage.proxies[0].passing.set()
    return began, time.monotonic()


async def drop(stage: Stage) -> tuple[float, float]:
    """All connections end, and none can be made."""
    began = time.monotonic()
    stage.proxies[0].close()
    await asyncio.sleep(stage.rest_seconds)
    await stage.proxies[0].open()
    return began, time.monotonic()


async def kill(stage: Stage) -> tuple[float, float]:
    began = time.monotonic()
    stage.workers[0].process.kill()
    await asyncio.sleep(1)
    await stage.restart(0)
    return began, time.monotonic()


FAULTS: dict[str, Fault] = {"reset": resets, "500": errors, "hang": hang, "drop": drop, "SIGKILL": kill}


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Each fault with one worker and with two; what was failed and how soon it was well again."""
    figures: dict[str, Any] = {"requests_per_second": REQUESTS_PER_SECOND, "faults": []}
    missed: list[str] = []
    print("workers fault     sent failed others   recovery     median    longest")
    for workers in (1, 2):
        for row in asyncio.run(_run(workers, rest_seconds=3 if quick else 10)):
            figures["faults"].append(row)
            times = (
                f"{row[name]:8.2f} s" for name in ("recovery_seconds", "median_seconds", "longest_seconds")
            )
            counts = (f"{row[name]:6}" for name in ("sent", "failed", "others_failed"))
            print(f"{workers:7} {row['fault']:7}", *counts, *times)
            name = f"{row['fault']} with {workers}"
            if row["others_failed"]:
                missed.append(f"{name}: {row['others_failed']} other requests failed")
            if row["recovery_seconds"] > ALLOWED_RECOVERY_SECONDS:
                missed.append(f"{name}: recovery took {row['recovery_seconds']} s")
    return figures, missed


async def _run(workers: int, rest_seconds: float) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="tercet-workers-") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        build(folder, "demo", DEMO / "corpus.jsonl")
        servers = [stack.enter_context(worker_at(folder, free_port())) for _ in range(workers)]
        proxies = [FaultProxy(int(server.url.rpartition(":")[2])) for server in servers]
        for proxy in proxies:
            await proxy.open()
        urls = ",".join(proxy.url for proxy in proxies)
        started = serving(folder, encoder_urls=urls)
        search_server = await asyncio.to_thread(stack.enter_context, started)
        rows = []
        async with httpx.AsyncClient(base_url=search_server.url, timeout=60, trust_env=False) as client:
            for name, fault in FAULTS.items():
                stage = Stage(folder, servers, proxies, Load(client), stack, rest_seconds)
                rows.append({"workers": workers, "fault": name, **await _measured(stage, fault)})
        for proxy in proxies:
            proxy.close()
        await asyncio.to_thread(stack.close)
        return rows


async def _measured(stage: Stage, fault: Fault) -> dict[str, Any]:
    """What became of the load before, during and after one fault."""
    async with stage.load.running():
        await asyncio.sleep(stage.rest_seconds / 2)
        away = await fault(stage)
        await asyncio.sleep(stage.rest_seconds)
    answers = stage.load.answers
    failed = [answer for answer in answers if answer.status != httpx.codes.OK]
    others, recovery_seconds = failed, 0.0
    if away is not None and len(stage.proxies) == 1:
        went, back = away
        others = [
            answer
            for answer in failed
            # One on its way when the worker went was on it.
            if answer.began + answer.seconds < went or answer.began > back + ALLOWED_RECOVERY_SECONDS
        ]
        recovery_seconds = max([0.0, *(answer.began - back for answer in failed)])
    return {
        "sent": len(answers),
        "failed": len(failed),
        "others_failed": len(others),
        "recovery_seconds": round(recovery_seconds, 3),
        "median_seconds": round(median(answer.seconds for answer in answers), 4),
        "longest_seconds": round(max(answer.seconds for answer in answers), 3),
    }


def worker_at(folder: Path, port: int) -> Any:
    """A worker at this port, once it is entered."""
    return serving(folder, command="encoder", port=port, threads=1)
