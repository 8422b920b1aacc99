"""One steady mixed load for half an hour: searches, large puts that replace each other, and large embeds.

Every client waits for its answer, and where it is told to come again later, it does. The server answers as
many searches in the last minute as in the first, and takes no more memory.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from benchmarks.serving.server import DEMO, Server, build, demo_queries, demo_texts, serving

SECONDS, QUICK_SECONDS = 1800.0, 180.0
WARM_UP_SECONDS = 30.0
TEXTS = 100  # of a large request
DOCUMENTS = 1000  # that are put, again and again
TEXT_LETTERS = 1200
CLIENTS = {"search": 4, "put": 3, "embed": 3}
LEAST_SHARE = 0.9  # of the first minute's searches
MEMORY_GROWTH_BYTES = 32 << 20

Request = tuple[str, str, dict[str, Any]]  # method, path and body


def measure(*, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Figures of each minute, and the bars that were missed."""
    with tempfile.TemporaryDirectory(prefix="tercet-steady-") as folder:
        build(Path(folder), "demo", DEMO / "corpus.jsonl")
        with serving(Path(folder)) as server:
            fill(server)
            minutes = loaded(server, QUICK_SECONDS if quick else SECONDS)
    first, last = minutes[0], minutes[-1]
    share = last["search"] / first["search"]
    memory_mb = [minute["memory_mb"] for minute in minutes]
    tenth = max(1, len(memory_mb) // 10)
    growth_mb = max(memory_mb[-tenth:]) - max(memory_mb[: 2 * tenth])
    missed = []
    if share < LEAST_SHARE:
        missed.append(f"the last minute has {share:.2f} of the first one's searches, less than {LEAST_SHARE}")
    if growth_mb * 2**20 > MEMORY_GROWTH_BYTES:
        missed.append(f"memory grew by {growth_mb} MiB")
    missed += [f"{kind} got {status}" for kind, status in statuses(minutes) if status not in ("200", "429")]
    return {"minutes": minutes, "share": round(share, 3), "memory_growth_mb": growth_mb}, missed


def fill(server: Server) -> None:
    """Puts every document once, so that the collection grows no more."""
    pick = random.Random(0)
    with httpx.Client(base_url=server.url, timeout=120) as client:
        for start in range(0, DOCUMENTS, TEXTS):
            method, path, body = put(pick, start)
            client.request(method, path, json=body).raise_for_status()


def loaded(server: Server, seconds: float) -> list[dict[str, Any]]:
    """What all clients were answered in each minute, and the server's memory."""
    counts: Counter[tuple[str, str]] = Counter()
    ended, lock = threading.Event(), threading.Lock()

    def ask(kind: str, make: Callable[[random.Random], Request], seed: int) -> None:
        pick = random.Random(seed)
        with httpx.Client(base_url=server.url, timeout=120) as client:
            while not ended.is_set():
                method, path, body = make(pick)
                answer = client.request(method, path, json=body)
                with lock:
                    counts[kind, str(answer.status_code)] += 1
                if answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                    ended.wait(float(answer.headers["retry-after"]))

    kinds: dict[str, Callable[[random.Random], Request]] = {"search": search, "put": put, "embed": embed}
    threads = [
        threading.Thread(target=ask, args=(kind, kinds[kind], number))
        for kind, count in CLIENTS.items()
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(WARM_UP_SECONDS)
        return [minute(server, counts, lock) for _ in range(round(seconds / 60))]
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def minute(server: Server, counts: Counter[tuple[str, str]], lock: threading.Lock) -> dict[str, Any]:
    """Answers of the next minute, and the most memory in it."""
    with lock:
        counts.clear()
    memory_bytes = 0
    for _ in range(60):
        time.sleep(1)
        memory_bytes = max(memory_bytes, server.memory_bytes)
    with lock:
        answers = dict(counts)
    figures = {
        **{kind: answers.get((kind, "200"), 0) for kind in CLIENTS},
        "others": {f"{kind} {status}": n for (kind, status), n in answers.items() if status != "200"},
        "memory_mb": round(memory_bytes / 2**20),
    }
    print(json.dumps(figures), flush=True)
    return figures


def statuses(minutes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Every kind and status but 200 that was seen."""
    seen = {name for figures in minutes for name in figures["others"]}
    return [(kind, status) for kind, _, status in (name.rpartition(" ") for name in sorted(seen))]


def search(pick: random.Random) -> Request:
    """A search of the documents that are put meanwhile."""
    return "POST", "/search", {"collection": "demo", "query": pick.choice(demo_queries())}


def put(pick: random.Random, start: int | None = None) -> Request:
    """Consecutive documents, those from one that is drawn."""
    first = pick.randrange(0, DOCUMENTS, TEXTS) if start is None else start
    texts = [long_text(pick) for _ in range(TEXTS)]
    documents = [{"id": f"put-{first + number}", "text": text} for number, text in enumerate(texts)]
    return "PUT", "/collections/demo/documents", {"documents": documents}


def embed(pick: random.Random) -> Request:
    """As many texts as a put has."""
    return "POST", "/embed", {"inputs": [long_text(pick) for _ in range(TEXTS)]}


def long_text(pick: random.Random) -> str:
    """Two texts of the bundled corpus."""
    return " ".join(pick.sample(demo_texts(), 2))[:TEXT_LETTERS]
