"""The threads of a server: each kind of work has its own, so that none waits behind another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, fields
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from tercet.models.cores import usable_cores
from tercet.service.load.clients import CLIENT
from tercet.service.load.deadlines import Deadline
from tercet.service.load.relay import Awaited, expiring

OPERATIONS_THREADS = 4  # they wait for the disk rather than compute
BACKUP_THREADS = 2  # each reads all bytes of a collection
IMPORTS_THREADS = 4  # each may wait for a process that parses PDF
WRITES_THREADS = 64  # they wait for the disk together: one force serves all that came before it

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Pool:
    """Threads for one kind of blocking work, awaited from an event loop or in a relay.

    A thread starts with the first work for it. Clients take turns; the work of each is done in order. Work
    that nobody awaits any more is not begun.
    """

    def __init__(self, name: str, threads: int) -> None:
        self.threads = threads
        self._executor = ThreadPoolExecutor(
            threads, thread_name_prefix=name, initializer=partial(setattr, _this_thread, "pool", self)
        )
        vars(self._executor)["_work_queue"] = _Lanes()

    @property
    def is_here(self) -> bool:
        """Whether this thread is one of its own."""
        return _this_thread.pool is self

    async def run(
        self, call: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs
    ) -> Result:
        """What the call gives or raises in one of the threads; at once in this one, if it is one of them."""
        if self.is_here:
            return call(*args, **options)
        return await Awaited(self.submit(call, *args, **options))

    async def run_in_time(
        self,
        deadline: Deadline,
        late: Callable[[], Exception],
        took: Callable[[float], object] | None,
        call: Callable[Arguments, Result],
        *args: Arguments.args,
        **options: Arguments.kwargs,
    ) -> Result:
        """As `run`, of work that is of no use after a deadline. Raises what `late` makes, as soon as the
        deadline passes, where the work has not begun by then.

        took: is told in the thread how many seconds work took that succeeded.
        """

        def begun() -> Result:
            if deadline.passed:
                raise late()
            started = time.perf_counter()
            result = call(*args, **options)
            if took is not None:
                took(time.perf_counter() - started)
            return result

        if self.is_here:
            return begun()
        work = self.submit(begun)
        with expiring(deadline, work.cancel):  # which ends nothing that has begun
            try:
                return await Awaited(work)
            except asyncio.CancelledError:
                if work.cancelled() and deadline.passed:
                    raise late() from None
                raise

    def submit(
        self, call: Callable[Arguments, Result], *args: Arguments.args, **options: Arguments.kwargs
    ) -> Future[Result]:
        """The same, as a future. It works for the request at hand, whose trace and facts it may add to."""
        return self._executor.submit(copy_context().run, partial(call, *args, **options))

    def close(self) -> None:
        """Begins nothing more; what runs ends by itself."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class _Lanes:
    """What waits for a thread, in a lane for each client: who sends much waits behind its own.

    It takes the place of the queue of an executor, which is first come, first served.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lanes = OrderedDict[str, deque[Any]]()  # the next one's first
        self._count = SimpleQueue[None]()  # as many as wait

    def put(self, work: Any) -> None:
        """Adds work of the client at hand."""
        with self._lock:
            self._lanes.setdefault(CLIENT.get(), deque()).append(work)
        self._count.put(None)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Takes what comes next. Raises queue.Empty where nothing comes."""
        self._count.get(block, timeout)
        with self._lock:
            client, lane = self._lanes.popitem(last=False)
            work = lane.popleft()
            if lane:
                self._lanes[client] = lane
        return work

    def get_nowait(self) -> Any:
        """Takes what comes next. Raises queue.Empty where nothing waits."""
        return self.get(block=False)


class _ThisThread(threading.local):
    """The pool that a thread belongs to."""

    pool: Pool | None = None


_this_thread = _ThisThread()


@dataclass(frozen=True, slots=True)
class Pools:
    """What the routes of one server share.

    search: retrieving and scoring. bodies: reading and gathering large ones. codings: compressing and
    decompressing them. operations: collections and jobs. readiness: looks at the data root. metrics: showing
    them. writes: documents, on their way to the disk. backups: making and restoring them. snapshots: fetching
    what is published elsewhere, or publishing there. lease: signs of life there. imports: reading files that
    clients send. Beside them the encoding service has threads for texts, and the collections for opening
    them.
    """

    search: Pool
    bodies: Pool
    codings: Pool
    operations: Pool
    readiness: Pool
    metrics: Pool
    writes: Pool
    backups: Pool
    snapshots: Pool
    lease: Pool
    imports: Pool

    @staticmethod
    def open(searches: int | None = None) -> Pools:
        """Pools that follow the cores, but for searches where so many are to be in work at a time."""
        return Pools(
            search=Pool("search", searches or usable_cores()),
            bodies=Pool("bodies", usable_cores()),
            codings=Pool("codings", usable_cores()),
            operations=Pool("operations", OPERATIONS_THREADS),
            readiness=Pool("readiness", 1),
            metrics=Pool("metrics", 1),
            writes=Pool("writes", WRITES_THREADS),
            backups=Pool("backups", BACKUP_THREADS),
            snapshots=Pool("snapshots", 1),
            lease=Pool("lease", 1),
            imports=Pool("imports", IMPORTS_THREADS),
        )

    def close(self) -> None:
        """Closes all of them."""
        for each in fields(self):
            pool: Pool = getattr(self, each.name)
            pool.close()


def text_pool() -> Pool:
    """For tokenizing long texts and joining large results, beside an encoder."""
    return Pool("texts", usable_cores())
