"""Many segments searched at a time, on cores that no other search uses."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, Protocol, TypeVar

from tercet.models.cores import usable_cores

DOCUMENTS_PER_THREAD = 4_096  # fewer are searched in the time that it takes to wake another thread

Result = TypeVar("Result")


class InParts(Protocol):
    """A search in parts that threads may take; costs: of each, as documents that are searched."""

    costs: list[int]

    def part(self, number: int) -> Any:
        """What one part finds."""


def in_parts(searches: Sequence[InParts]) -> list[list[Any]]:
    """What the parts of each search find, those of all searches at a time on free cores."""
    parts = [(search, number) for search in searches for number in range(len(search.costs))]
    costs = [cost for search in searches for cost in search.costs]

    def find(place: int) -> Any:
        search, number = parts[place]
        return search.part(number)

    done = iter(segment_threads().map(find, costs))
    return [list(islice(done, len(search.costs))) for search in searches]


@cache
def segment_threads() -> SegmentThreads:
    """Those of this process."""
    return SegmentThreads(usable_cores())


os.register_at_fork(after_in_child=segment_threads.cache_clear)  # a fork leaves no thread but one


class SegmentThreads:
    """Threads that help searches: together with these, no more run than there are cores."""

    def __init__(self, cores: int) -> None:
        self._pool = ThreadPoolExecutor(cores, "tercet-segments")  # a thread starts with its first work
        self._free = cores
        self._changing = threading.Lock()

    def map(self, work: Callable[[int], Result], documents: Sequence[int]) -> list[Result]:
        """What `work` gives for the place of each segment, in order; raises what it raises.

        documents: of each segment, or what else takes as long. The calling thread takes one segment
        after the other, and so does each helper. One that has not begun when all are taken is not waited for.
        """
        results: dict[int, Result] = {}
        places = iter(range(len(documents)))  # gives each place once, whichever thread asks

        def run() -> None:
            for place in places:
                results[place] = work(place)

        helpers = self._enter(min(len(documents) - 1, sum(documents) // DOCUMENTS_PER_THREAD))
        try:
            helping = [self._pool.submit(run) for _ in range(helpers)]
            run()
            for each in helping:
                if not each.cancel():
                    each.result()
        finally:
            self._leave(helpers)
        return [results[place] for place in range(len(documents))]

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
