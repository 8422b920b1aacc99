"""Large answers take no memory, and no large request stops the event loop.

Memory: the most that a server of its own takes while it answers `/embed` of 64 and of 1,024 long texts with
all outputs. Loop: how late a heartbeat on the server's event loop is under each single large request, less
what its thread waited for a processor; the least of several runs, since other processes stop a loop too.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import DEMO, Server, build, serving
from tests.endurance.serving.large_requests import BINARY, JSON, Large, large_requests, long_texts

MEMORY_MIB = 64
STOPPED_MS = 20.0
FEW_TEXTS, MANY_TEXTS = 64, 1024
LONG_CHARACTERS = 200_000
WATCHED = Path(__file__).with_name("watched.py")
SAMPLE_SECONDS = 0.01
TIMEOUT_SECONDS = 1200.0


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures, and bars missed."""
    lines = (DEMO / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    sources = [str(json.loads(line)["text"]) for line in lines]
    many = 256 if quick else MANY_TEXTS
    with tempfile.TemporaryDirectory(prefix="tercet-large-") as folder:
        data = Path(folder)
        memory = {accept: _memory(data, sources, many, accept) for accept in (JSON, BINARY)}
        build(data, "demo", DEMO / "corpus.jsonl")
        hits = 20 if quick else 250
        texts = long_texts(sources, hits, words=LONG_CHARACTERS // 5)
        build(data, "long", [{"id": str(number), "text": text} for number, text in enumerate(texts)])
        stops = _stops(data, sources, hits, runs=2 if quick else 3, texts=32 if quick else 256)
    missed = [
        f"{accept}: {many} texts take {figures['difference_mib']} MiB more than {FEW_TEXTS}"
        for accept, figures in memory.items()
        if figures["difference_mib"] > MEMORY_MIB
    ]
    missed += [
        f"{request['name']} stops the loop for {request['stopped_ms']} ms"
        for request in stops
        if request["stopped_ms"] > STOPPED_MS
    ]
    return {"memory": memory, "requests": stops}, missed


def _memory(data: Path, sources: list[str], many: int, accept: str) -> dict[str, float]:
    """Peaks in MiB above what the server takes before, for few texts and for many."""
    figures: dict[str, float] = {}
    for name, count in (("few", FEW_TEXTS), ("many", many)):
        request = Large(
            name, "/embed", json.dumps({"inputs": long_texts(sources, count)}).encode(), accept=accept
        )
        with serving(data) as server, _peak(server) as peak:
            status, size, seconds = _sent(server.url, request)
        assert status == httpx.codes.OK, f"status {status}"
        figures |= {f"{name}_texts": count, f"{name}_peak_mib": round(peak[0] / 2**20, 1)}
        figures |= {f"{name}_answer_mib": round(size / 2**20, 1), f"{name}_seconds": round(seconds, 1)}
    figures["difference_mib"] = round(figures["many_peak_mib"] - figures["few_peak_mib"], 1)
    print(f"{accept}: {figures}")
    return figures


@contextmanager
def _peak(server: Server) -> Iterator[list[int]]:
    """The most memory of the server while this is open, in bytes."""
    peak = [server.memory_bytes]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            peak[0] = max(peak[0], server.memory_bytes)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def _stops(data: Path, sources: list[str], hits: int, *, runs: int, texts: int) -> list[dict[str, Any]]:
    long_query = " ".join(" ".join(sources).split()[:450])
    table: list[dict[str, Any]] = []
    with serving(data, program=[str(WATCHED)]) as server, httpx.Client(base_url=server.url) as client:
        time.sleep(1)
        client.get("/stopped")
        time.sleep(1)
        print(f"idle: {client.get('/stopped').json()}")
        print(
            f"{'request':60} {'body MiB':>9} {'status':>6} {'answer MiB':>10} {'stopped ms':>10} {'late':>8}"
        )
        for request in large_requests(long_texts(sources, texts), long_query, hits):
            worst: list[dict[str, float]] = []
            for _ in range(runs):
                client.get("/stopped")
                status, size, _ = _sent(server.url, request)
                worst.append(client.get("/stopped").json())
            row = {
                "name": request.name,
                "body_mib": round(len(request.body) / 2**20, 2),
                "status": status,
                "answer_mib": round(size / 2**20, 2),
                "stopped_ms": min(each["stopped_ms"] for each in worst),
                "late_ms": min(each["late_ms"] for each in worst),
            }
            table.append(row)
            print(
                "{name:60.60} {body_mib:9} {status:6} {answer_mib:10} {stopped_ms:10} {late_ms:8}".format(
                    **row
                ),
                flush=True,
            )
    return table


def _sent(url: str, request: Large) -> tuple[int, int, float]:
    """Status, bytes of the answer and seconds of a request whose answer is not kept."""
    started = time.perf_counter()
    headers = {"Content-Type": JSON, "Accept": request.accept, "Accept-Encoding": "identity"}
    size = 0
    with httpx.stream(
        request.method, url + request.path, content=request.body, headers=headers, timeout=TIMEOUT_SECONDS
    ) as response:
        for part in response.iter_raw():
            size += len(part)
    return response.status_code, size, time.perf_counter() - started
