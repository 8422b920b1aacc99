"""Writes to many collections in one process that may open few files.

Run as `python many_collections.py COMMAND ROOT COLLECTIONS OPEN_FILES` from the repository root. `measure`
says what that took as JSON; `write` goes on until it is killed, and says the collection of each answered
write.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.live.collection import LiveCollection
from tercet.models.representations import Representations, SparseRows, TokenVectors
from tercet.service.collections.registry import CollectionRegistry


def put(live: LiveCollection, *ids: str) -> None:
    """Documents that are all alike."""
    count = len(ids)
    encoded = Representations(
        np.full(count, 3, np.int64),
        np.zeros(count, np.bool_),
        np.tile(np.float32([0.6, 0.8, 0, 0]), (count, 1)),
        SparseRows(np.arange(count + 1), np.zeros(count, np.int32), np.ones(count, np.float32)),
        TokenVectors(np.tile(np.float32([1, 0]), (2 * count, 1)), np.arange(count + 1) * 2),
    )
    live.put([Document(id, id) for id in ids], encoded)


def open_files() -> int:
    """Of this process."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - without the ones that this itself opens


def create(root: Path, collections: int) -> list[str]:
    """Empty collections; returns their names."""
    names = [f"c{number:04d}" for number in range(collections)]
    for name in names:
        Collection.create(root, name, CollectionSettings(name, "tiny", "f", 4, 2, 20))
    return names


def write(root: Path, names: list[str]) -> None:
    """One document after the other, for ever."""
    registry = CollectionRegistry(root)
    for number in itertools.count():
        for name in names:
            with registry.writing(name) as live:
                put(live, str(number))
            os.write(1, f"{name}\n".encode())


def measure(root: Path, names: list[str]) -> None:
    """Writes twice to each, in turns, and reads all."""
    before, threads = open_files(), threading.active_count()
    registry = CollectionRegistry(root)
    with registry.writing(names[0]) as live:
        put(live, "a")
    one = threading.active_count()
    most_files, most_threads = 0, 0
    for name in names[1:]:
        with registry.writing(name) as live:
            put(live, "a")
        most_files, most_threads = max(most_files, open_files()), max(most_threads, threading.active_count())
    found = {registry.snapshot(name).documents for name in names}
    for name in names:
        with registry.writing(name) as live:
            put(live, "b", "c")
        most_files, most_threads = max(most_files, open_files()), max(most_threads, threading.active_count())
    later = {registry.snapshot(name).documents for name in names}
    counted = sum(counts.documents for _, counts in registry.all_statistics())
    started = time.thread_time()  # others flush and merge
    again = sum(counts.documents for _, counts in registry.all_statistics())
    scrape = time.thread_time() - started
    registry.close()
    reopened = CollectionRegistry(root)
    reopened.open_written()
    last = {reopened.snapshot(name).documents for name in names}
    reopened.close()
    said = {
        "documents": [sorted(found), sorted(later), sorted(last)],
        "counted": [counted, again],
        "files": most_files - before,
        "threads": most_threads - one,
        "left": [open_files() - before, threading.active_count() - threads],
        "scrape_seconds": scrape,
    }
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    command, root, collections, allowed = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(allowed), int(allowed)))
    {"measure": measure, "write": write}[command](Path(root), create(Path(root), int(collections)))
