"""Searches of 200,000 documents, without writes and while 200 ready documents a second are written."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.writes.documents import Batches, collection, queries
from tercet.index.live.collection import LiveCollection
from tercet.index.live.records import LiveLimits, LiveObserver
from tercet.models.representations import Representations
from tercet.service.serving import SWITCH_SECONDS

BATCH = 20
WRITTEN_A_SECOND = 200
RATIO = 2.0


class Counted(LiveObserver):
    """Counts flushes and merges."""

    def __init__(self) -> None:
        self.flushes = self.merges = 0

    def flushed(self, documents: int, seconds: float) -> None:
        """One more."""
        self.flushes += 1

    def merged(self, documents: int, seconds: float) -> None:
        """One more."""
        self.merges += 1


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Milliseconds of searches, median and 99th percentile."""
    size, seconds = (5_000, 5.0) if quick else (200_000, 120.0)
    sys.setswitchinterval(SWITCH_SECONDS)  # as in a server, where searches and writes are threads, too
    made = collection(work)
    with made.writer() as writer:
        for documents, encoded in Batches(1000).upto(size):
            writer.add(documents, encoded)
        writer.publish()
    asked, counted = queries(64), Counted()
    # Flushes come so often that some merges fall into the time that is measured.
    limits = LiveLimits(flush_documents=100 if quick else 1_000)
    with LiveCollection(made, limits, counted) as live:
        searched(live, asked, seconds / 10)
        alone = searched(live, asked, seconds)
        stop = threading.Event()
        writer_thread = threading.Thread(target=write, args=(live, size, stop))
        writer_thread.start()
        beside = searched(live, asked, seconds)
        stop.set()
        writer_thread.join()
        again = searched(live, asked, seconds)
    before = float(np.percentile(np.concatenate([alone, again]), 99))
    ratio = float(np.percentile(beside, 99)) / before
    figures = {
        "documents": size,
        "flushes": counted.flushes,
        "merges": counted.merges,
        **{
            f"{name}_{label}_ms": round(float(np.percentile(times, share)) * 1000, 2)
            for name, times in (("alone", alone), ("beside_writes", beside), ("alone_again", again))
            for label, share in (("median", 50), ("p99", 99))
        },
        "p99_ratio": round(ratio, 2),
    }
    missed = [] if ratio <= RATIO else [f"the 99th percentile is {ratio:.2f} times that without, not {RATIO}"]
    return figures, missed


def searched(live: LiveCollection, asked: list[Representations], seconds: float) -> Any:
    """Seconds of each search, one after the other, of the collection as it is then."""
    times, end, number = [], time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        started = time.perf_counter()
        live.snapshot().search(asked[number % len(asked)])
        times.append(time.perf_counter() - started)
        number += 1
    return np.array(times)


def write(live: LiveCollection, size: int, stop: threading.Event) -> None:
    """New documents, and half as many in the place of others, at a steady rate."""
    batches, number, due = Batches(BATCH), 2 * size // BATCH, time.perf_counter()
    while not stop.is_set():
        live.put(*batches.of(number if number % 2 else number % (size // BATCH)))
        number += 1
        due += BATCH / WRITTEN_A_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
