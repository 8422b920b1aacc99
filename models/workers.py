"""Threads that a forked process has, too: it would wait for those of its parent, which it has not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, TypeVar

from tercet.models.priority import yield_to_main_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """A number of threads, started when they are first needed. Safe to use from several threads.

    niceness: of threads that begin from now on, below the main thread; a server sets it for its process.
    """

    niceness: ClassVar[int] = 0

    def __init__(self, count: int, name: str) -> None:
        self._count = count
        self._name = name
        self._process, self._pool = os.getpid(), self._started()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results of all items in their order, worked on side by side."""
        if self._process != os.getpid():
            self._process, self._pool = os.getpid(), self._started()
        return self._pool.map(function, items)

    def _started(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._count, self._name, self._begin)

    def _begin(self) -> None:
        if self.niceness:
            yield_to_main_thread(self.niceness)
