"""Several awaitables at once, all or none; and one call that several callers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Generic, TypeVar

from service.load.pools import Pool

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
    question. Callers of a slow name wait without a thread each, which callers of other names need. Use from
    one event loop.
    """

    def __init__(self, call: Callable[[str], Result], pool: Pool) -> None:
        self._call = call
        self._pool = pool
        self._running: dict[str, asyncio.Future[Result]] = {}

    async def __call__(self, name: str) -> Result:
        """What the function gives or raises for the name."""
        earlier = self._running.get(name)
        if earlier is not None:
            await asyncio.wait([earlier])
        running = self._running.get(name)
        if running is None:
            running = self._running[name] = self._pool.submit(self._call, name)
            running.add_done_callback(lambda done: self._forget(name, done))
        return await asyncio.shield(running)  # a caller that leaves takes nothing from the others

    def _forget(self, name: str, done: asyncio.Future[Result]) -> None:
        del self._running[name]
        if not done.cancelled():
            done.exception()  # else asyncio complains of one that no caller stayed to receive
