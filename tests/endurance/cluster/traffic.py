"""Writers and searchers that never stop, through routers, while servers change behind them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

NAME = "articles"
DOCUMENTS = f"/collections/{NAME}/documents"
WORDS = ("tea", "water", "train", "steam", "leaf", "green", "black", "station", "hot", "brew", "rail", "cup")
QUERIES = ("green tea", "steam train at the station", "hot water", "black leaf", "brew a cup", "rail")
OWN = 200  # documents of each writer
STILL = {"lt": {"year": 2000}}  # those that nobody writes

Figures = dict[str, Any]


@dataclass
class Writes:
    """What writers saw. documents: by id, as the last acknowledged write left it."""

    acknowledged: int = 0
    refused: int = 0
    unanswered: int = 0
    longest_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    documents: dict[str, Figures] = field(default_factory=dict)


class Writer(threading.Thread):
    """Writes documents of its own without pause."""

    def __init__(self, number: int, routers: Sequence[str], writes: Writes, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._ids = [f"w{number}-{each}" for each in range(OWN)]
        self._routers = routers
        self._stopped = stopped
        self._random = random.Random(number)
        self._all = writes

    def run(self) -> None:
        with httpx.Client(timeout=90, trust_env=False) as client:
            while not self._stopped.is_set() and not self._all.failures:
                ids = self._random.sample(self._ids, self._random.randint(1, 5))
                match self._random.randrange(4):
                    case 0:
                        self._remove(client, ids)
                    case 1:
                        self._change(client, ids)
                    case _:
                        self._put(client, ids)

    def _put(self, client: httpx.Client, ids: Sequence[str]) -> None:
        new = {
            id: {"text": " ".join(self._random.choices(WORDS, k=6)), "metadata": {"year": 2000}} for id in ids
        }
        documents = [{"id": id, **content} for id, content in new.items()]
        if self._acknowledged(client, "PUT", DOCUMENTS, {"documents": documents}):
            self._all.documents.update(new)

    def _change(self, client: httpx.Client, ids: Sequence[str]) -> None:
        metadata = {"year": self._random.randrange(2000, 2020)}
        if self._acknowledged(client, "POST", f"{DOCUMENTS}/update", {"ids": ids, "metadata": metadata}):
            for id in ids:
                if id in self._all.documents:
                    self._all.documents[id] = {**self._all.documents[id], "metadata": metadata}

    def _remove(self, client: httpx.Client, ids: Sequence[str]) -> None:
        if self._acknowledged(client, "POST", f"{DOCUMENTS}/delete", {"ids": ids}):
            for id in ids:
                self._all.documents.pop(id, None)

    def _acknowledged(self, client: httpx.Client, method: str, path: str, body: Any) -> bool:
        began = time.monotonic()
        while True:
            try:
                answer = client.request(method, self._random.choice(self._routers) + path, json=body)
            except httpx.TransportError:
                self._all.unanswered += 1
                time.sleep(0.1)
                continue
            if answer.is_success:
                self._all.acknowledged += 1
                self._all.longest_seconds = max(self._all.longest_seconds, time.monotonic() - began)
                return True
            if answer.status_code not in (429, 503):
                self._all.failures.append(f"{method} {path}: {answer.status_code} {answer.text}")
                return False
            self._all.refused += 1
            time.sleep(0.1)


class Searcher(threading.Thread):
    """Searches without pause; every other time for documents that nobody writes, by the dense side alone,
    which is exact and the same whatever else there is. seconds: of each search, with the moment of its end.
    """

    def __init__(self, routers: Sequence[str], stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._routers = routers
        self._stopped = stopped
        self._still: dict[str, list[str]] = {}
        self.seconds: list[tuple[float, float]] = []
        self.failures: list[str] = []

    def run(self) -> None:
        with httpx.Client(timeout=90, trust_env=False) as client:
            while not self._stopped.is_set():
                for still in (False, True):
                    query = random.choice(QUERIES)
                    body: Figures = {"collection": NAME, "query": query, "top_k": 20}
                    if still:
                        body |= {"weights": {"dense": 1, "sparse": 0, "colbert": 0}, "filter": STILL}
                    began = time.monotonic()
                    answer = client.post(f"{random.choice(self._routers)}/search", json=body)
                    ended = time.monotonic()
                    if not answer.is_success:
                        self.failures.append(f"{answer.status_code} {answer.text}")
                        continue
                    self.seconds.append((ended, ended - began))
                    ids = [hit["id"] for hit in answer.json()["hits"]]
                    if still and self._still.setdefault(query, ids) != ids:
                        self.failures.append(f"{query}: {ids}, not {self._still[query]}")


@contextmanager
def searching(routers: Sequence[str], count: int) -> Iterator[list[Searcher]]:
    """Searchers meanwhile."""
    stopped = threading.Event()
    searchers = [Searcher(routers, stopped) for _ in range(count)]
    for searcher in searchers:
        searcher.start()
    yield searchers
    stopped.set()
    for searcher in searchers:
        searcher.join()


def percentile_ms(searchers: Sequence[Searcher], since: float, until: float) -> Figures:
    """The median and the 99th percentile of searches that ended in a time."""
    found = sorted(
        seconds for searcher in searchers for ended, seconds in searcher.seconds if since <= ended < until
    )
    return {
        "searches": len(found),
        "p50_ms": round(1000 * found[len(found) // 2], 1),
        "p99_ms": round(1000 * found[min(len(found) - 1, len(found) * 99 // 100)], 1),
    }


@contextmanager
def writing(routers: Sequence[str], count: int, writes: Writes) -> Iterator[None]:
    """Writers meanwhile, each of which ends with its last write acknowledged."""
    stopped = threading.Event()
    writers = [Writer(number, routers, writes, stopped) for number in range(count)]
    for writer in writers:
        writer.start()
    yield
    stopped.set()
    for writer in writers:
        writer.join()
