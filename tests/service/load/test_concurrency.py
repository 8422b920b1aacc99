"""Calls that callers share."""

import asyncio
import threading
import time

import pytest

from tercet.service.load.concurrency import SharedCalls, in_lanes
from tercet.service.load.pools import Pool
from tercet.service.load.relay import relay

POOL = Pool("calls", 2)


async def test_lanes_keep_the_order_and_take_so_many_at_a_time() -> None:
    running, most = 0, 0

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(10 - number):
            await asyncio.sleep(0)
        running -= 1
        return 2 * number

    assert await in_lanes(3, range(10), work) == list(range(0, 20, 2))
    assert most == 3
    assert await in_lanes(3, [], work) == []


async def test_a_failure_in_a_lane_ends_the_others() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0)
        if number == 4:
            raise ValueError(number)
        done.append(number)

    with pytest.raises(ValueError, match="4"):
        await in_lanes(2, range(100), work)
    assert len(done) < 10


async def test_callers_of_one_name_share_calls_and_other_names_do_not_wait() -> None:
    gate = threading.Event()
    calls: list[str] = []

    def call(name: str) -> str:
        calls.append(name)
        if name == "slow":
            assert gate.wait(60)
        return name.upper()

    shared = SharedCalls(call, POOL)
    slow = [asyncio.create_task(shared("slow")) for _ in range(100)]
    await asyncio.sleep(0)
    slow[0].cancel()  # one that leaves takes nothing from the others
    assert await asyncio.wait_for(shared("quick"), 30) == "QUICK"
    gate.set()
    assert await asyncio.gather(*slow[1:]) == ["SLOW"] * 99
    assert calls.count("slow") == 2  # one for the first, one for all who came meanwhile


async def test_a_caller_in_a_thread_of_the_pool_needs_no_other() -> None:
    pool, seen = Pool("only", 1), list[str]()
    begun, gate = threading.Event(), threading.Event()

    def call(name: str) -> str:
        seen.append(threading.current_thread().name)
        begun.set()
        assert gate.wait(60)
        return name.upper()

    shared = SharedCalls(call, pool)

    async def asks() -> str:
        await pool.run(time.sleep, 0.05)
        return await shared("a")

    first = asyncio.create_task(relay(asks()))
    assert await asyncio.to_thread(begun.wait, 60)
    second = [asyncio.create_task(shared("a")) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(first, *second) == ["A"] * 4
    assert seen == ["only_0"] * 2
    pool.close()


async def test_a_failure_reaches_every_caller_and_is_forgotten() -> None:
    outcomes = iter([ValueError("no"), ValueError("no"), None])
    gate = threading.Event()

    def call(name: str) -> str:
        assert gate.wait(60)
        error = next(outcomes)
        if error is not None:
            raise error
        return name

    shared = SharedCalls(call, POOL)
    calls = [asyncio.create_task(shared("a")) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    failed = await asyncio.gather(*calls, return_exceptions=True)
    assert [str(error) for error in failed] == ["no"] * 3
    assert await shared("a") == "a"
    with pytest.raises(StopIteration):
        next(outcomes)


async def test_an_answer_is_never_from_before_its_question() -> None:
    world = "old"
    seen, gate = threading.Event(), threading.Event()

    def look(_: str) -> str:
        found = world
        seen.set()
        assert gate.wait(60)
        return found

    shared = SharedCalls(look, POOL)
    first = asyncio.create_task(shared("a"))
    await asyncio.to_thread(seen.wait, 60)
    world = "new"
    second = asyncio.create_task(shared("a"))
    await asyncio.sleep(0)
    gate.set()
    assert await first == "old"
    assert await second == "new"
