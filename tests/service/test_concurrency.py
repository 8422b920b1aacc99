"""Calls that callers share."""

import asyncio
import threading

import pytest

from service.concurrency import SharedCalls


async def test_callers_of_one_name_share_a_call_and_other_names_do_not_wait() -> None:
    gate = threading.Event()
    calls: list[str] = []

    def call(name: str) -> str:
        calls.append(name)
        if name == "slow":
            assert gate.wait(10)
        return name.upper()

    shared = SharedCalls(call)
    slow = [asyncio.create_task(shared("slow")) for _ in range(100)]
    await asyncio.sleep(0)
    slow[0].cancel()  # one that leaves takes nothing from the others
    assert await asyncio.wait_for(shared("quick"), 5) == "QUICK"
    gate.set()
    assert await asyncio.gather(*slow[1:]) == ["SLOW"] * 99
    assert calls.count("slow") == 1
    assert await shared("slow") == "SLOW"
    assert calls.count("slow") == 2


async def test_a_failure_reaches_every_caller_and_is_forgotten() -> None:
    outcomes = iter([ValueError("no"), None])

    def call(name: str) -> str:
        error = next(outcomes)
        if error is not None:
            raise error
        return name

    shared = SharedCalls(call)
    failed = await asyncio.gather(shared("a"), shared("a"), return_exceptions=True)
    assert [str(error) for error in failed] == ["no", "no"]
    assert await shared("a") == "a"
    with pytest.raises(StopIteration):
        next(outcomes)
