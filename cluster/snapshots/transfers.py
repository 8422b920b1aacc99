"""Several files at once between here and a store, and how far they are."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from tercet.cluster.objects.store import Moved

Item = TypeVar("Item")
BytesDone = Callable[[int, int], None]
"""Told of bytes that are done, and their total."""

THREADS = 4


def nobody(_done: int, _total: int) -> None:
    """Tells nobody."""


class Transferred:
    """Adds up what several threads move."""

    def __init__(self, total: int, progress: BytesDone) -> None:
        self.done = 0
        self._total = total
        self._progress = progress
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Counts bytes."""
        with self._lock:
            self.done += count
            if self._total:
                self._progress(self.done, self._total)


def move_all(
    items: Iterable[Item], move: Callable[[Item, Moved], None], total: int, progress: BytesDone
) -> None:
    """Moves each item in one of a few threads. The first failure is raised, and nothing more is begun."""
    transferred = Transferred(total, progress)
    with ThreadPoolExecutor(THREADS, thread_name_prefix="transfer") as threads:
        futures = [threads.submit(move, item, transferred.add) for item in items]
        try:
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        finally:
            for future in futures:
                future.cancel()
