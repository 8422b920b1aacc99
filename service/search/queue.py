"""The searches that a server has taken on, and how long another would wait for a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tercet.service.load.admission import ANY_WAIT, Admission, too_late
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pace import Pace
from tercet.service.load.pools import Pool

FIRST_SEARCHES_PER_SECOND = 50.0  # a guess, until searches are measured

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class SearchQueue:
    """Searches from admission to their end, those among them whose query is still being encoded.

    Safe to use from several threads.
    """

    def __init__(self, pool: Pool, admission: Admission = ANY_WAIT) -> None:
        """pool: where they run; admission: by default of any wait."""
        self._pool = pool
        self._admission = admission
        self._pace = Pace(FIRST_SEARCHES_PER_SECOND)
        self._lock = threading.Lock()
        self._slots = 0

    @property
    def wait_seconds(self) -> float:
        """How long another search would wait for a thread once its query is encoded."""
        ahead = max(0, self._slots + 1 - self._pool.threads)
        return self._pace.seconds(ahead) / self._pool.threads

    @property
    def threads(self) -> int:
        """How many searches run at a time."""
        return self._pool.threads

    @contextmanager
    def slots(self, searches: int) -> Iterator[None]:
        """A slot in the queue for each search of a request, for as long as that is anywhere in the server."""
        with self._lock:
            self._slots += searches
        try:
            yield
        finally:
            with self._lock:
                self._slots -= searches

    def run(
        self,
        deadline: Deadline,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Coroutine[Any, Any, Result]:
        """What a search, or a part of one that has begun, gives in a thread for searches.

        Raises DeadlineExceededError where none was free in time.
        """
        return self._pool.run_in_time(
            deadline,
            lambda: too_late(self.wait_seconds),
            partial(self._pace.observe, 1),
            work,
            *args,
            **options,
        )

    async def admitted(
        self,
        deadline: Deadline,
        work: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """Runs a search that begins, as `run` does. Raises OverloadedError where it would wait too long."""
        self._admission.require(self.wait_seconds, deadline)
        with self.slots(1):
            return await self.run(deadline, work, *args, **options)
