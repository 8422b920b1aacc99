"""Sustained writes of documents that the server encodes, beside a batch build of the same documents."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import DEMO, build_command, environment, serving

BATCH = 64
CLIENTS = 3
SHARE = 0.9


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Documents a second of both."""
    count = 400 if quick else 6_000
    texts = [json.loads(line)["text"] for line in (DEMO / "corpus.jsonl").read_text().splitlines()]
    documents = [
        {"id": str(number), "text": f"{number} {texts[number % len(texts)]}"} for number in range(count)
    ]
    source = work / "documents.jsonl"
    source.write_text("".join(json.dumps(document) + "\n" for document in documents))
    built = count / build_seconds(work, source)
    with serving(work) as server:
        written = count / put_seconds(server.url, documents)
    share = written / built
    figures = {
        "documents": count,
        "clients": CLIENTS,
        "built_a_second": round(built, 1),
        "written_a_second": round(written, 1),
        "share": round(share, 3),
    }
    return figures, [] if share >= SHARE else [f"{share:.2f} of a build's documents/s, not {SHARE}"]


def build_seconds(work: Path, source: Path) -> float:
    """Of a build, without the start of its process."""
    done = subprocess.run(
        build_command(source, "built", "--data", str(work), "--progress", "json"),
        env=environment({}),
        cwd=work,
        check=True,
        capture_output=True,
    )
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def put_seconds(url: str, documents: list[dict[str, str]]) -> float:
    """Of puts by several clients at once."""
    with httpx.Client(base_url=url, timeout=120) as client:
        client.put("/collections/written", json={}).raise_for_status()
        warm = [{"id": "warm", "text": "warm up"}]
        client.put("/collections/written/documents", json={"documents": warm}).raise_for_status()
    batches, lock = (documents[at : at + BATCH] for at in range(0, len(documents), BATCH)), threading.Lock()

    def write() -> None:
        with httpx.Client(base_url=url, timeout=120) as client:
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                put(client, batch)

    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(write) for _ in range(CLIENTS)]:
            done.result()
    return time.perf_counter() - started


def put(client: httpx.Client, batch: list[dict[str, str]]) -> None:
    """Sends documents, again where the server asks for that."""
    while True:
        answer = client.put("/collections/written/documents", json={"documents": batch})
        if answer.status_code != httpx.codes.TOO_MANY_REQUESTS:
            answer.raise_for_status()
            return
        time.sleep(float(answer.headers["Retry-After"]))
