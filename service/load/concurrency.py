"""Several awaitables at once, all or none; and one call that several callers share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from tercet.service.load.pools import Pool
from tercet.service.load.relay import Awaited

Item = TypeVar("Item")
Result = TypeVar("Result")


async def all_of(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Results in order. The first failure cancels the rest and is raised as it is."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def in_lanes(
    lanes: int, items: Iterable[Item], work: Callable[[Item], Coroutine[Any, Any, Result]]
) -> list[Result]:
    """Results in order, of so many items at a time, so that what else waits gets its turn between them.

    Raises as `all_of`.
    """
    waiting = list(enumerate(items))
    results: dict[int, Result] = {}
    following = iter(waiting)

    async def lane() -> None:
        for place, item in following:
            results[place] = await work(item)

    await all_of(lane() for _ in range(min(lanes, len(waiting))))
    return [results[place] for place, _ in waiting]


class SharedCalls(Generic[Result]):
    """Runs a blocking function of a name in a pool, one call at a time for a name.

    Who asks meanwhile waits, and shares the next call with all who wait: an answer is never from before its
    question. Callers of a slow name wait without a thread each, which callers of other names need. Safe to
    use from several threads.
    """

    def __init__(self, call: Callable[[str], Result], pool: Pool) -> None:
        self._call = call
        self._pool = pool
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._next: dict[str, Future[Result]] = {}  # what those wait for who came while a call ran

    async def __call__(self, name: str) -> Result:
        """What the function gives or raises for the name."""
        with self._lock:
            runs = name in self._running
            result = self._next.setdefault(name, Future()) if runs else Future[Result]()
            here = not runs and self._pool.is_here
            if here:
                self._running.add(name)
            elif not runs:
                self._begin(name, result)
        if here:
            self._run(name, result)
        return await Awaited(result, shared=True)  # a caller that leaves takes nothing from the others

    def _begin(self, name: str, result: Future[Result]) -> None:
        try:
            work = self._pool.submit(self._run, name, result)
        except RuntimeError:  # the pool is closed
            result.cancel()
        else:
            self._running.add(name)
            work.add_done_callback(lambda done: done.cancelled() and result.cancel())

    def _run(self, name: str, result: Future[Result]) -> None:
        try:
            found = self._call(name)
        except BaseException as error:  # noqa: BLE001 - a panic of compiled code is no Exception
            self._ended(name)
            result.set_exception(error)
        else:
            self._ended(name)
            result.set_result(found)

    def _ended(self, name: str) -> None:
        """Begins the call for those who wait, before anyone who learns of this one can ask again."""
        with self._lock:
            self._running.remove(name)
            following = self._next.pop(name, None)
            if following is not None:
                self._begin(name, following)
