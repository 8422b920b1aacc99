"""Several shards asked at once, from the event loop or from a thread that waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def outcomes(work: Sequence[Coroutine[Any, Any, Result]]) -> list[Result | Exception]:
    """What each gives, or the exception that it raises, in order, once all have ended."""
    results: list[Result | Exception] = []
    for result in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(result, BaseException) and not isinstance(result, Exception):
            raise result
        results.append(result)
    return results


class Loop:
    """The server's event loop, for threads that wait for what runs there."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0

    def take(self) -> None:
        """From now on it is the running one."""
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    def call(self, work: Callable[[], None]) -> None:
        """Has it do something soon. For threads other than that of the loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(work)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """What the work gives or raises. For threads other than that of the loop."""
        if self._loop is None or self._thread == threading.get_ident():  # which would wait for itself
            work.close()
            raise RuntimeError("shards are asked by threads, once the event loop is known")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
