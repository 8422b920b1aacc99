"""What HTTP adds to a search: `POST /search` on a kept-alive loopback connection, and the same in Python.

Both search the bundled demo corpus with the embedded checkpoint and one encoder thread, the server in a
process of its own. Requests of the two kinds alternate, so that whatever else the machine does hits both.
Reported are medians, the difference of the medians, and the part of a request outside the server's own
search (its time as the client sees it, less `took_ms.total`).

Run: python benchmarks/http_overhead.py [--requests 500]
"""

import argparse
import asyncio
import datetime
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from models.loader import load_encoder
from service.collections import CollectionRegistry
from service.encoding import LocalEncoding
from service.search import SearchPipeline, SearchQuery
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
        data = Path(folder)
        tercet("index", "build", str(CORPUS / "corpus.jsonl"), "--collection", "demo", "--data", folder)
        with server(data) as url:
            figures = asyncio.run(measure(url, data, queries, asked.requests))
    record = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "requests_of_each_kind": asked.requests,
        **figures,
    }
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=2))
    assert figures["added_ms"] <= LIMIT_MS, f"HTTP adds more than {LIMIT_MS} ms at the median"


async def measure(url: str, data: Path, queries: list[str], requests: int) -> dict[str, float]:
    """Milliseconds of the two ways, alternating; the same queries in the same order."""
    settings = Settings(data=data, threads=1)
    encoding = LocalEncoding(
        load_encoder(settings.checkpoint, settings.engine, threads=1),
        batch_tokens=settings.batch_tokens,
        queue_tokens=settings.queue_tokens,
    )
    pipeline = SearchPipeline(encoding, CollectionRegistry(data / "collections"))
    python: list[float] = []
    http: list[float] = []
    inside: list[float] = []
    async with httpx.AsyncClient(base_url=url) as client:
        for number in range(WARM_UP + requests):
            query = queries[number % len(queries)]
            started = time.perf_counter()
            outcome = await pipeline.search(SearchQuery("demo", query))
            between = time.perf_counter()
            response = await client.post("/search", json={"collection": "demo", "query": query})
            ended = time.perf_counter()
            answer = response.json()
            assert [hit["id"] for hit in answer["hits"]] == [hit.document.id for hit in outcome.hits]
            if number >= WARM_UP:
                python.append(between - started)
                http.append(ended - between)
                inside.append(answer["took_ms"]["total"] / 1000)
    await encoding.close()
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
def server(data: Path) -> Iterator[str]:
    """The address of `tercet serve` over a data root."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    flags = ("--port", str(port), "--data", str(data), "--threads", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.main", "serve", *flags], cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        while not is_ready(url):
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(60)


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def tercet(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "cli.main", *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
    )


def machine() -> dict[str, str | int | float]:
    """The hardware that the figures belong to, and how busy it was."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    cpu = next(
        (line.partition(":")[2].strip() for line in lines if "model name" in line), platform.processor()
    )
    return {"cpu": cpu, "cores": os.cpu_count() or 0, "load": round(os.getloadavg()[0], 1)}


if __name__ == "__main__":
    main()
