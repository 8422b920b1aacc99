"""What HTTP adds to a search: `POST /search` on a kept-alive loopback connection, and the same in Python.

Both go through one `SearchPipeline` over the bundled demo corpus with the embedded checkpoint and one encoder
thread: the server runs in a thread of this process, and the Python call runs on the server's event loop.
Requests of the two kinds alternate, so that whatever else the machine does hits both. Reported are medians,
their difference, and the part of a request outside the search (the client's time less `took_ms.total`).

Run: python benchmarks/http_overhead.py [--requests 500]
"""

import argparse
import asyncio
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvloop

from service.app import create_app, server_for
from service.search.pipeline import SearchOutcome, SearchPipeline, SearchQuery
from service.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "examples" / "demo"
RESULT = ROOT / "benchmarks" / "results" / "http_overhead.json"
LIMIT_MS = 3.0
WARM_UP = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=500)
    asked = parser.parse_args()
    if "OPENBLAS_NUM_THREADS" not in os.environ:  # as the tercet command has it; NumPy reads it when it loads
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - this very script
    lines = (CORPUS / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line)["query"] for line in lines]
    with tempfile.TemporaryDirectory(prefix="tercet-http-") as folder:
        build(Path(folder))
        settings = Settings.model_validate({"data": Path(folder), "port": 0, "threads": 1})
        with serving(settings) as (url, pipeline, loop):
            figures = measure(url, pipeline, loop, queries, asked.requests)
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "requests_of_each_kind": asked.requests,
        **figures,
    }
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))
    assert figures["added_ms"] <= LIMIT_MS, f"HTTP adds more than {LIMIT_MS} ms at the median"


def measure(
    url: str, pipeline: SearchPipeline, loop: asyncio.AbstractEventLoop, queries: list[str], requests: int
) -> dict[str, float]:
    """Milliseconds of the two ways, alternating; the same queries in the same order."""

    async def timed(query: str) -> tuple[float, SearchOutcome]:
        started = time.perf_counter()
        outcome = await pipeline.search(SearchQuery("demo", query))
        return time.perf_counter() - started, outcome

    python: list[float] = []
    http: list[float] = []
    inside: list[float] = []
    with httpx.Client(base_url=url) as client:
        for number in range(WARM_UP + requests):
            query = queries[number % len(queries)]
            python_seconds, outcome = asyncio.run_coroutine_threadsafe(timed(query), loop).result()
            started = time.perf_counter()
            response = client.post("/search", json={"collection": "demo", "query": query})
            http_seconds = time.perf_counter() - started
            answer = response.json()
            assert [hit["id"] for hit in answer["hits"]] == [hit.document.id for hit in outcome.hits]
            if number >= WARM_UP:
                python.append(python_seconds)
                http.append(http_seconds)
                inside.append(answer["took_ms"]["total"] / 1000)
    outside = [whole - part for whole, part in zip(http, inside, strict=True)]
    return {
        "python_ms": milliseconds(python),
        "http_ms": milliseconds(http),
        "added_ms": round(milliseconds(http) - milliseconds(python), 3),
        "outside_the_search_ms": milliseconds(outside),
    }


def milliseconds(seconds: list[float]) -> float:
    """The median."""
    return round(statistics.median(seconds) * 1000, 3)


@contextmanager
def serving(settings: Settings) -> Iterator[tuple[str, SearchPipeline, asyncio.AbstractEventLoop]]:
    """A real server in a thread: its address, its search pipeline, and the event loop of both."""
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


def build(data: Path) -> None:
    """Builds the collection `demo`."""
    source = str(CORPUS / "corpus.jsonl")
    command = [sys.executable, "-m", "cli.main", "index", "build", source, "--collection", "demo"]
    subprocess.run([*command, "--data", str(data)], cwd=ROOT, check=True, capture_output=True)


def machine() -> dict[str, str | int | float]:
    """The hardware that the figures belong to, and how busy it was."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next(
        (line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor()
    )
    return {"cpu": cpu, "cores": os.cpu_count() or 0, "load": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    main()
