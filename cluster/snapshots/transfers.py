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


def move_all(
    items: Iterable[Item], move: Callable[[Item, Moved], None], total: int, progress: BytesDone
) -> None:
    """Moves each item in one of a few threads. The first failure is raised, and nothing more is begun."""
    done, adding = 0, threading.Lock()

    def moved(count: int) -> None:
        nonlocal done
        with adding:
            done += count
            if total:
                progress(done, total)

    with ThreadPoolExecutor(THREADS, thread_name_prefix="transfer") as threads:
        futures = [threads.submit(move, item, moved) for item in items]
        try:
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in ended:
                future.result()
        finally:
            for future in futures:
                future.cancel()
