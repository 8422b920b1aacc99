"""Work that threads hand on: where its steps run, and how it ends."""

import asyncio
import gc
import threading
import time
import weakref
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, NoReturn

import pytest

from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.relay import Awaited, expiring, on_loop, relay
from tests.service.polling import pause, turn_of_the_loop


def this_thread() -> str:
    return threading.current_thread().name.split("_")[0]


async def held(pool: Pool) -> threading.Event:
    """Keeps the pool's only thread until the event is set."""
    gate, begun = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert gate.wait(60)

    pool.submit(hold)
    assert await asyncio.to_thread(begun.wait, 60)
    return gate


async def leave(working: asyncio.Task[Any]) -> None:
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 60)


async def test_each_step_runs_in_the_thread_that_ended_the_last_one() -> None:
    first, second = Pool("first", 1), Pool("second", 1)
    gate = await held(first)
    asked = ContextVar("asked", default="")

    async def work() -> list[tuple[str, str]]:
        steps = [(this_thread(), asked.get())]
        await first.run(asked.get)
        steps.append((this_thread(), asked.get()))
        await second.run(first.submit(int).result)  # as soon as this thread of `first` waits
        steps.append((this_thread(), asked.get()))
        return steps

    asked.set("tea")
    working = asyncio.create_task(relay(work()))
    await asyncio.sleep(0)
    gate.set()
    assert await working == [("MainThread", "tea"), ("first", "tea"), ("second", "tea")]
    asked.set("")
    assert await work() == [("MainThread", "")] * 3  # without a relay all is on the loop
    first.close()
    second.close()


async def test_the_loop_is_woken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, woken = Pool("work", 1), list[object]()
    loop = asyncio.get_running_loop()
    wake = loop.call_soon_threadsafe

    def counted(*args: Any, **options: Any) -> Any:
        woken.append(args[0])
        return wake(*args, **options)

    async def work() -> int:
        return sum([await pool.run(divmod, number, 1) for number in range(10)], ())[18]

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    assert await relay(work()) == 9
    assert len(woken) == 1
    assert await work() == 9
    assert len(woken) > 6  # once each time but where a thread was quicker than the loop went to wait
    pool.close()


async def test_results_that_are_there_and_work_that_awaits_nothing() -> None:
    there: Future[int] = Future()
    there.set_result(7)

    async def work() -> int:
        return sum([await Awaited(there) for _ in range(2000)])

    assert await relay(work()) == await work() == 14_000


async def test_what_needs_the_loop_gets_it_and_the_work_goes_on() -> None:
    pool, asked = Pool("work", 1), ContextVar("asked", default="")

    async def sleeps() -> tuple[str, str]:
        await asyncio.sleep(0.01)
        return this_thread(), asked.get()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def work() -> list[tuple[str, str]]:
        await pool.run(int)
        seen = [await on_loop(sleeps())]
        with pytest.raises(ValueError, match="no"):
            await on_loop(fails())
        await pool.run(turn_of_the_loop())
        return [*seen, (this_thread(), asked.get())]

    asked.set("tea")
    assert await relay(work()) == [("MainThread", "tea"), ("work", "tea")]
    assert await on_loop(sleeps()) == ("MainThread", "tea")
    pool.close()


async def test_who_leaves_ends_what_the_work_awaits_on_the_loop() -> None:
    ended, begun = asyncio.Event(), asyncio.Event()

    async def sleeps() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    working = asyncio.create_task(relay(on_loop(sleeps())))
    await begun.wait()
    await leave(working)
    await asyncio.wait_for(ended.wait(), 30)


async def test_a_relay_in_a_relay_is_one() -> None:
    pool = Pool("work", 1)

    async def inner() -> str:
        await pool.run(turn_of_the_loop())
        return this_thread()

    async def work() -> tuple[str, str]:
        return await relay(inner()), this_thread()

    assert await relay(work()) == ("work", "work")
    pool.close()


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("error", [ValueError("no"), BaseException("a panic")])
async def test_what_the_work_raises_reaches_who_waits(error: BaseException, steps: int) -> None:
    pool = Pool("work", 1)

    async def work() -> NoReturn:
        for _ in range(steps):
            await pool.run(int)
        raise error

    with pytest.raises(type(error), match=str(error)):
        await relay(work())
    pool.close()


async def test_what_a_thread_raises_can_be_caught_in_the_work() -> None:
    pool = Pool("work", 1)

    async def work() -> str:
        try:
            await pool.run(divmod, 1, 0)
        except ZeroDivisionError:
            return "caught"
        return "not raised"

    assert await relay(work()) == "caught"
    pool.close()


async def test_who_leaves_takes_what_waits_with_it() -> None:
    pool, begun, ended = Pool("work", 1), list[str](), list[str]()
    gate = await held(pool)

    async def work() -> None:
        try:
            await pool.run(begun.append, "work")
        finally:
            ended.append(this_thread())

    working = asyncio.create_task(relay(work()))
    await asyncio.sleep(0)
    await leave(working)
    assert ended == ["MainThread"]
    gate.set()
    await pool.run(begun.append, "next")
    assert begun == ["next"]
    pool.close()


async def test_who_leaves_ends_the_work_at_its_next_wait() -> None:
    pool, gate, begun, ended = Pool("work", 1), threading.Event(), threading.Event(), threading.Event()
    steps = list[str]()

    def step() -> None:
        begun.set()
        assert gate.wait(60)

    async def work() -> None:
        try:
            await pool.run(step)
            steps.append("went on")
        finally:
            ended.set()

    working = asyncio.create_task(relay(work()))
    await until(begun)
    await leave(working)
    gate.set()
    await until(ended)
    assert steps == []
    pool.close()


async def test_work_that_begins_to_wait_after_its_caller_left_does_not_wait() -> None:
    pool, other = Pool("work", 1), Pool("other", 1)
    begun, gate, ended = threading.Event(), threading.Event(), threading.Event()
    first, second = await held(pool), await held(other)
    called = list[str]()

    async def work() -> None:
        try:
            await pool.run(int)
            begun.set()
            assert gate.wait(60)  # here, between two waits, its caller leaves
            await other.run(called.append, "work")
        finally:
            ended.set()

    working = asyncio.create_task(relay(work()))
    await asyncio.sleep(0)
    first.set()
    await until(begun)
    await leave(working)
    gate.set()
    await until(ended)
    second.set()
    await other.run(int)
    assert called == []
    pool.close()
    other.close()


@pytest.mark.parametrize("relayed", [True, False])
async def test_what_others_wait_for_too_goes_on(relayed: bool) -> None:
    shared: Future[str] = Future()

    async def work() -> str:
        return await Awaited(shared, shared=True)

    working = [asyncio.create_task(relay(work()) if relayed else work()) for _ in range(2)]
    await asyncio.sleep(0)
    await leave(working[0])
    shared.set_result("tea")
    assert await working[1] == "tea"


@pytest.mark.parametrize("relayed", [True, False])
async def test_cancelled_results_cancel_who_waits(relayed: bool) -> None:
    pool = Pool("work", 1)
    gate = await held(pool)

    async def work() -> None:
        await pool.run(int)

    working = asyncio.create_task(relay(work()) if relayed else work())
    await asyncio.sleep(0)
    pool.close()
    with pytest.raises(asyncio.CancelledError):
        await working
    gate.set()


@pytest.mark.parametrize(("seconds", "before_seconds"), [(0.0, 0.0), (0.05, 0.0), (0.02, 0.2)])
@pytest.mark.parametrize("relayed", [True, False])
async def test_a_deadline_that_passes_is_told(relayed: bool, seconds: float, before_seconds: float) -> None:
    """However early: before the work begins or before it can tell whom, or while it waits."""
    pool = Pool("work", 1)
    deadline = Deadline(time.monotonic() + seconds)
    answer: Future[str] = Future()

    def expire() -> None:
        if not answer.done():
            answer.set_result("too late")

    async def work() -> str:
        await pool.run(time.sleep, before_seconds)
        with expiring(deadline, expire):
            return await Awaited(answer)

    assert await asyncio.wait_for(relay(work(), deadline) if relayed else work(), 30) == "too late"
    pool.close()


@pytest.mark.parametrize("relayed", [True, False])
async def test_no_deadline_is_told_after_its_wait(relayed: bool) -> None:
    deadline, told, pool = Deadline(time.monotonic() + 0.1), list[str](), Pool("work", 1)

    async def work() -> bool:
        with expiring(deadline, lambda: told.append("too late")):
            await pool.run(int)
            in_time = not deadline.passed
        await pool.run(time.sleep, deadline.remaining_seconds + 0.05)
        return in_time

    in_time = await (relay(work(), deadline) if relayed else work())
    assert told == [] or not in_time
    pool.close()


class Answer:
    """What a relay's work gives."""


@pytest.mark.slow
async def test_an_answer_is_freed_with_who_asked(pool: Pool) -> None:
    """Without the collector of cycles, which would look much later."""

    async def work() -> Answer:
        await pool.run(time.sleep, 0.01)
        return Answer()

    gc.collect()
    gc.disable()
    try:
        answer = await relay(work())
        kept = weakref.ref(answer)
        del answer
        async with asyncio.timeout(30):
            while kept() is not None:  # the thread still lets go of it
                await pause()
    finally:
        gc.enable()
