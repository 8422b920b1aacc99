"""What a thousand written collections take of one server, beside one: threads, files, and a scrape."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import Server, serving

COLLECTIONS, QUICK_COLLECTIONS = 1_000, 600  # far more than are open at a time
SCRAPES = 50
THREADS_MORE, FILES_MORE = 40, 2  # in all, and for each collection
SCRAPE_MS = 50.0


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures, and the bars that were missed."""
    count = QUICK_COLLECTIONS if quick else COLLECTIONS
    with (
        tempfile.TemporaryDirectory(prefix="tercet-collections-") as folder,
        # No flush meanwhile, so that each of them has something that only its ledger holds.
        serving(Path(folder), flush_seconds=3_600) as server,
        httpx.Client(base_url=server.url) as client,
    ):
        make(client, 0)
        write(client, 0)
        one = taken(server)
        for number in range(1, count):
            make(client, number)
        seconds = [write(client, number) for number in range(1, count)]
        many = taken(server)
        scrape_ms = scrapes(client)
        for number in range(count):  # whichever were closed for others
            write(client, number)
        again = taken(server)
    threads = max(many["threads"], again["threads"]) - one["threads"]
    files = (max(many["files"], again["files"]) - one["files"]) / (count - 1)
    figures = {
        "collections": count,
        "one": one,
        "many": many,
        "written_again": again,
        "files_more_each": round(files, 2),
        "write_ms": round(1000 * statistics.median(seconds), 2),
        "scrape_ms": {"median": round(statistics.median(scrape_ms), 2), "most": round(max(scrape_ms), 2)},
    }
    for name, value in figures.items():
        print(f"{name:16} {value}")
    missed = []
    if threads > THREADS_MORE:
        missed.append(f"{threads} threads more than with one collection; the bar is {THREADS_MORE}")
    if files > FILES_MORE:
        missed.append(f"{files:.2f} files more for each collection; the bar is {FILES_MORE}")
    if statistics.median(scrape_ms) > SCRAPE_MS:
        missed.append(f"/metrics takes {statistics.median(scrape_ms):.1f} ms; the bar is {SCRAPE_MS:g}")
    return figures, missed


def make(client: httpx.Client, number: int) -> None:
    """Makes an empty collection."""
    client.put(path_of(number), json={}).raise_for_status()


def write(client: httpx.Client, number: int) -> float:
    """Puts a document into a collection; in how many seconds."""
    document = {"id": "tea", "text": "Tea is brewed with hot water."}
    began = time.perf_counter()
    client.put(f"{path_of(number)}/documents", json={"documents": [document]}).raise_for_status()
    return time.perf_counter() - began


def path_of(number: int) -> str:
    """Of a collection."""
    return f"/collections/c{number:04d}"


def taken(server: Server) -> dict[str, int]:
    """What the process has of threads, open files, and memory that is not mapped from files."""
    return {
        "threads": server.process.num_threads(),
        "files": server.process.num_fds(),
        "memory_mib": server.memory_bytes >> 20,
    }


def scrapes(client: httpx.Client) -> list[float]:
    """How long scrapes of the metrics took, in ms."""
    found = []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        client.get("/metrics").raise_for_status()
        found.append(1000 * (time.perf_counter() - began))
    return found
