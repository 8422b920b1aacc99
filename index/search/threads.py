"""Many segments searched at a time, on cores that no other search uses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from tercet.models.cores import usable_cores

DOCUMENTS_PER_THREAD = 4_096  # fewer are searched in the time that it takes to wake another thread

Result = TypeVar("Result")


@cache
def segment_threads() -> SegmentThreads:
    """The threads that all searches of this process share."""
    return SegmentThreads(usable_cores())


os.register_at_fork(after_in_child=segment_threads.cache_clear)  # a fork leaves no thread but one


class SegmentThreads:
    """Threads that help searches: together with these, no more run than there are cores."""

    def __init__(self, cores: int) -> None:
        self._pool = ThreadPoolExecutor(cores, "tercet-segments")  # a thread starts with its first work
        self._free = cores
        self._changing = threading.Lock()

    def run(self, parts: Sequence[Callable[[], Result]], costs: Sequence[int]) -> list[Result]:
        """What each part of a search gives, in order; raises what one raises.

        costs: of each part, as documents that are searched. The calling thread takes one part after the
        other, and so does each helper. One that has not begun when all are taken is not waited for.
        """
        results: dict[int, Result] = {}
        numbers = iter(range(len(parts)))  # gives each place once, whichever thread asks

        def take() -> None:
            for number in numbers:
                results[number] = parts[number]()

        helpers = self._enter(min(len(parts) - 1, sum(costs) // DOCUMENTS_PER_THREAD))
        try:
            helping = [self._pool.submit(take) for _ in range(helpers)]
            take()
            for helper in helping:
                if not helper.cancel():
                    helper.result()
        finally:
            self._leave(helpers)
        return [results[number] for number in range(len(parts))]

    def _enter(self, wanted: int) -> int:
        """Takes a core for the caller, and up to so many for helpers, of which it returns the number."""
        with self._changing:
            self._free -= 1
            helpers = max(0, min(wanted, self._free))
            self._free -= helpers
            return helpers

    def _leave(self, helpers: int) -> None:
        with self._changing:
            self._free += 1 + helpers
