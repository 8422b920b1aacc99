"""How long a search waits for a thread, and what happens to one that waits too long."""

import asyncio
import threading
import time

import pytest

from tercet.service.exceptions import DeadlineExceededError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pool
from tercet.service.search.queue import FIRST_SEARCHES_PER_SECOND, SearchQueue

SECONDS = 1 / FIRST_SEARCHES_PER_SECOND


def test_the_wait_by_hand() -> None:
    queue = SearchQueue(Pool("search", 2))
    assert queue.wait_seconds == 0
    with queue.slots(1):
        assert queue.wait_seconds == 0  # the other thread is free
        with queue.slots(1):
            assert queue.wait_seconds == pytest.approx(SECONDS / 2)
            with queue.slots(2):  # several queries of one request
                assert queue.wait_seconds == pytest.approx(3 * SECONDS / 2)
    assert queue.wait_seconds == 0


async def test_searches_are_measured() -> None:
    pool = Pool("search", 1)
    queue = SearchQueue(pool)
    assert await queue.run(NO_DEADLINE, divmod, 7, 2) == (3, 1)
    began = time.perf_counter()
    await queue.run(NO_DEADLINE, time.sleep, 0.3)
    took = time.perf_counter() - began
    with queue.slots(1):
        assert 0.1 < queue.wait_seconds < took + SECONDS
    pool.close()


async def test_a_search_is_dropped_that_no_thread_took_in_time() -> None:
    pool, gate, begun = Pool("search", 1), threading.Event(), list[str]()
    queue = SearchQueue(pool)
    first = asyncio.create_task(queue.run(NO_DEADLINE, gate.wait, 10))
    late = asyncio.create_task(queue.run(Deadline(time.monotonic() + 0.05), begun.append, "late"))
    in_time = asyncio.create_task(queue.run(Deadline(time.monotonic() + 60), begun.append, "in time"))
    await asyncio.sleep(0.1)
    gate.set()
    with pytest.raises(DeadlineExceededError):
        await late
    await asyncio.gather(first, in_time)
    assert begun == ["in time"]
    pool.close()
