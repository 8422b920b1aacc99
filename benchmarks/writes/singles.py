"""Searches after 200,000 single puts, beside those of the same documents built at once."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.writes.documents import Batches, collection, queries
from tercet.index.live.collection import LiveCollection
from tercet.index.snapshot import Snapshot
from tercet.models.representations import Representations

WRITERS = 16
RATIO = 1.5


def measure(work: Path, *, quick: bool) -> tuple[dict[str, Any], list[str]]:
    """Puts a second, and medians of searches whose turns alternate: at once, and after the merges."""
    size, turns = (2_000, 50) if quick else (200_000, 400)
    made, batches, numbers, lock = collection(work), Batches(1), iter(range(size)), threading.Lock()
    built = collection(work, "built")
    with built.writer() as writer:
        for documents, encoded in Batches(1).upto(size):
            writer.add(documents, encoded)
        writer.publish()

    def write() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            live.put(*batches.of(number))

    with LiveCollection(made) as live:
        started = time.perf_counter()
        with ThreadPoolExecutor(WRITERS) as pool:
            for writer_done in [pool.submit(write) for _ in range(WRITERS)]:
                writer_done.result()
        rate = size / (time.perf_counter() - started)
        statistics_then = live.stats()
        live_ms, built_ms = alternating([live.snapshot(), built.snapshot()], queries(64), turns)
        while live.stats().merging:
            time.sleep(1)
        merged_segments = live.stats().segments
        merged_ms, beside_ms = alternating([live.snapshot(), built.snapshot()], queries(64), turns)
    figures = {
        "documents": size,
        "writers": WRITERS,
        "puts_a_second": round(rate),
        "segments": statistics_then.segments,
        "memory_documents": statistics_then.memory_documents,
        "live_median_ms": round(live_ms, 2),
        "built_median_ms": round(built_ms, 2),
        "ratio": round(live_ms / built_ms, 2),
        "segments_after_merges": merged_segments,
        "ratio_after_merges": round(merged_ms / beside_ms, 2),
    }
    slow = live_ms > RATIO * built_ms
    return figures, [f"searches take {live_ms / built_ms:.2f} times as long, not {RATIO}"] if slow else []


def alternating(snapshots: list[Snapshot], asked: list[Representations], turns: int) -> list[float]:
    """The median milliseconds of a search of each snapshot."""
    times: list[list[float]] = [[] for _ in snapshots]
    for turn in range(turns):
        for snapshot, own in zip(snapshots, times, strict=True):
            started = time.perf_counter()
            snapshot.search(asked[turn % len(asked)])
            if turn >= turns // 10:
                own.append(time.perf_counter() - started)
    return [statistics.median(own) * 1000 for own in times]
