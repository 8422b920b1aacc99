"""Shards asked at once, from the loop and from threads."""

import asyncio

import pytest

from tercet.cluster.shards.calls import Loop, outcomes


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    if value < 0:
        raise ValueError(f"{value} is below 0")
    return value


async def test_all_end_though_one_fails() -> None:
    first, second, third = await outcomes([answer(1), answer(-1), answer(3)])
    assert (first, third) == (1, 3)
    assert isinstance(second, ValueError)


async def test_a_thread_waits_for_what_runs_on_the_loop() -> None:
    loop = Loop()
    with pytest.raises(RuntimeError, match="once the event loop is known"):
        loop.run(answer(1))
    loop.take()
    assert await asyncio.to_thread(lambda: loop.run(answer(7))) == 7
    with pytest.raises(ValueError, match="below 0"):
        await asyncio.to_thread(lambda: loop.run(answer(-1)))


async def test_the_loop_itself_does_not_wait_for_itself() -> None:
    loop = Loop()
    loop.take()
    with pytest.raises(RuntimeError, match="asked by threads"):
        loop.run(answer(1))
