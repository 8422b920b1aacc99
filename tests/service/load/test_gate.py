"""Who is turned away at the wire."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tercet.service.exceptions import OverloadedError
from tercet.service.load import gate as module
from tercet.service.load.gate import (
    FEW,
    LATE_SECONDS,
    LEAST_RUNNING,
    SEARCHES,
    VERY_LATE_SECONDS,
    Gate,
    Passage,
)
from tercet.service.load.loop import LoopDelay


@pytest.fixture
def clock(monkeypatch: Any) -> Any:
    """The monotonic clock of the gate: `clock.now` is set by the test."""

    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_few_requests_are_let_in_however_late_the_loop_is() -> None:
    gate = Gate(LoopDelay(), 2.0)
    for _ in range(FEW):
        gate.require("/embed", 10.0, None)
        gate.begin("/embed")
    with pytest.raises(OverloadedError, match=r"10\.00 s late") as refused:
        gate.require("/embed", 10.0, None)
    assert (refused.value.reason, refused.value.retry_after_seconds) == ("loop", 1)
    gate.end("/embed", answered=True)
    gate.require("/embed", 10.0, None)


def test_many_are_turned_away_while_the_last_beats_were_late_or_one_very_late() -> None:
    loop = LoopDelay()
    gate = Gate(loop, 2.0)
    for _ in range(FEW):
        gate.begin("/embed")
    gate.require("/embed", VERY_LATE_SECONDS, None)
    with pytest.raises(OverloadedError):  # the kernel knows better than the last beat
        gate.require("/embed", VERY_LATE_SECONDS + 0.01, None)
    loop.mean_seconds = LATE_SECONDS
    gate.require("/embed", 0.0, None)
    loop.mean_seconds = LATE_SECONDS + 0.01
    with pytest.raises(OverloadedError):
        gate.require("/embed", 0.0, None)


def test_searches_are_let_in_by_how_many_are_answered_in_a_second(clock: Any) -> None:
    """20 a second, so that 20 in work are one second, three quarters of the longest wait."""
    gate = Gate(LoopDelay(), 4 / 3)
    for _ in range(20):
        gate.begin(SEARCHES)
    for _ in range(400):
        clock.now += 0.05
        gate.end(SEARCHES, answered=True)
        gate.begin(SEARCHES)
    assert gate.search_seconds == pytest.approx(1.0, rel=0.01)
    gate.begin(SEARCHES)
    for _ in range(400):  # those that are refused show nothing of how fast searches are
        gate.begin(SEARCHES)
        gate.end(SEARCHES, answered=False)
    with pytest.raises(
        OverloadedError, match=r"21 searches are in work, and one more would take 1\.. s"
    ) as told:
        gate.require(SEARCHES, 0.0, None)
    assert told.value.retry_after_seconds == pytest.approx(0.05, rel=0.1)
    gate.require("/embed", 0.0, None)  # of any size, so judged by its tokens
    for _ in range(6):
        gate.end(SEARCHES, answered=True)
    gate.require(SEARCHES, 0.0, None)
    gate.require(SEARCHES, 0.0, "soon")  # no time at all: it is judged where the rest of it is
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 0.0, "0.5")


def test_a_pause_without_searches_is_no_slowness(clock: Any) -> None:
    gate = Gate(LoopDelay(), 2.0)
    clock.now = 1000.0
    for _ in range(FEW):
        gate.begin(SEARCHES)
    for _ in range(100):
        clock.now += 0.01
        gate.end(SEARCHES, answered=True)
        gate.begin(SEARCHES)
    gate.require(SEARCHES, 0.0, None)
    assert gate.search_seconds < 0.2


def test_who_sends_a_body_or_reads_an_answer_is_not_in_work() -> None:
    gate = Gate(LoopDelay(), 2.0)
    passages = [Passage(gate, SEARCHES) for _ in range(FEW)]
    gate.require(SEARCHES, 10.0, None)  # their bodies are not here
    for passage in passages * 2:  # all of it came, and it is read
        passage.begin()
    with pytest.raises(OverloadedError):
        gate.require(SEARCHES, 10.0, None)
    for _ in range(2):  # its answer begins, and its task ends
        passages[0].end(answered=True)
    assert gate.in_work == FEW - 1
    gate.require(SEARCHES, 10.0, None)


async def finished(gate: Gate, turns: list[tuple[str, Awaitable[None]]]) -> list[str]:
    """The clients in the order of their turns, each of which ends before the next one begins."""
    order = []

    async def run(client: str, turn: Awaitable[None]) -> None:
        await turn
        order.append(client)
        gate.ran()

    await asyncio.gather(*(run(client, turn) for client, turn in turns))
    return order


async def test_searches_that_wait_take_turns_by_client() -> None:
    gate = Gate(LoopDelay(), 2.0)
    for _ in range(LEAST_RUNNING + 1):  # five run at 50 a second
        await gate.turn("greedy")
    waiting = [("greedy", gate.turn("greedy")) for _ in range(4)]
    waiting += [("polite", gate.turn("polite")) for _ in range(2)]
    order = asyncio.ensure_future(finished(gate, waiting))
    for _ in range(3):  # until all of them wait
        await asyncio.sleep(0)
    gate.ran()
    assert await order == ["greedy", "polite", "greedy", "polite", "greedy", "greedy"]


async def test_who_leaves_in_a_lane_takes_no_turn() -> None:
    gate = Gate(LoopDelay(), 2.0)
    for _ in range(LEAST_RUNNING + 1):
        await gate.turn("greedy")
    leaving = [asyncio.ensure_future(gate.turn("polite")) for _ in range(2)]
    staying = asyncio.ensure_future(gate.turn("polite"))
    await asyncio.sleep(0)
    leaving[0].cancel()  # while it waits
    await asyncio.sleep(0)
    gate.ran()
    leaving[1].cancel()  # just when its turn has come
    await asyncio.wait_for(staying, 20)
    assert leaving[0].cancelled()
    assert leaving[1].cancelled()


def test_a_client_waits_for_its_own_searches_and_as_many_of_each_other(clock: Any) -> None:
    """25 of a greedy one wait at 20 a second: a second and a quarter for it, and .3 s for the polite one."""
    gate = Gate(LoopDelay(), 4 / 3)

    async def fill() -> None:
        for _ in range(400):
            gate.begin(SEARCHES)
        for _ in range(400):
            clock.now += 0.05
            gate.end(SEARCHES, answered=True)
        for _ in range(LEAST_RUNNING):
            gate.begin(SEARCHES)
            await gate.turn("greedy")
        tasks = []
        for _ in range(25):
            gate.begin(SEARCHES)
            tasks.append(asyncio.ensure_future(gate.turn("greedy")))
        await asyncio.sleep(0)
        gate.require(SEARCHES, 0.0, None, "polite")
        gate.require(SEARCHES, 0.0, "0.3", "polite")
        with pytest.raises(OverloadedError):
            gate.require(SEARCHES, 0.0, "0.2", "polite")
        with pytest.raises(OverloadedError):
            gate.require(SEARCHES, 0.0, None, "greedy")
        for task in tasks:
            task.cancel()

    asyncio.run(fill())
