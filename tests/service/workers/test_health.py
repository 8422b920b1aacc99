"""What is learnt of a worker: from probes, from requests without an answer, and from answers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import pytest

from tercet.models.errors import EncoderUnavailableError
from tercet.service.exceptions import WorkerSilentError
from tercet.service.workers.health import WorkerHealth, WorkerState

UP, SUSPECTED, DOWN = WorkerState.UP, WorkerState.SUSPECTED, WorkerState.DOWN
BROKEN = WorkerSilentError("the connection was reset", hung=False)
HUNG = WorkerSilentError("no answer within 2 s", hung=True)
NOT_READY = EncoderUnavailableError("status 503")


class Probed:
    """The health of a worker whose probes have these results, None for a good one."""

    def __init__(self, *results: Exception | None) -> None:
        self.results = deque(results)
        self.asked: list[WorkerState] = []
        self.given_up = 0
        self.health = WorkerHealth("http://gpu-a", self._probe, 60, self._give_up)

    async def _probe(self, state: WorkerState) -> None:
        self.asked.append(state)
        result = self.results.popleft()
        if result is not None:
            raise result

    def _give_up(self) -> None:
        self.given_up += 1


async def states_after(probed: Probed) -> list[WorkerState]:
    """The state after each of its probes."""
    states = []
    while probed.results:
        await probed.health.ask()
        states.append(probed.health.state)
    return states


@pytest.mark.parametrize(
    ("results", "states", "given_up"),
    [
        ([None, None], [UP, UP], 0),
        ([BROKEN], [DOWN], 0),  # at first nothing is known of it
        ([None, BROKEN, None], [UP, SUSPECTED, UP], 0),
        ([None, HUNG, None], [UP, SUSPECTED, UP], 0),
        ([None, BROKEN, BROKEN, BROKEN, None], [UP, SUSPECTED, DOWN, DOWN, UP], 0),
        ([None, HUNG, HUNG, HUNG], [UP, SUSPECTED, DOWN, DOWN], 2),
        ([None, NOT_READY, None], [UP, DOWN, UP], 0),  # what it works on it may still finish
        ([None, NOT_READY, HUNG], [UP, DOWN, DOWN], 1),
    ],
)
async def test_states(results: list[Exception | None], states: list[WorkerState], given_up: int) -> None:
    probed = Probed(*results)
    assert await states_after(probed) == states
    assert probed.given_up == given_up
    assert probed.asked == [SUSPECTED, *states[:-1]]


async def test_a_probe_in_vain_says_nothing_of_a_worker_that_answers_requests() -> None:
    probed = Probed(None)
    await probed.health.ask()

    async def answered_meanwhile(_state: WorkerState) -> None:
        probed.health.heard()
        raise HUNG

    probed.health._probe = answered_meanwhile
    await probed.health.ask()
    assert probed.health.state is UP


async def test_a_probe_says_nothing_of_what_is_suspected_since_it_began() -> None:
    probed = Probed(None, None)
    await probed.health.ask()
    probe = probed.health._probe

    async def suspected_meanwhile(_state: WorkerState) -> None:
        probed.health.suspect("it encodes with another fingerprint")

    probed.health._probe = suspected_meanwhile
    await probed.health.ask()
    assert probed.health.state is SUSPECTED
    probed.health._probe = probe
    await probed.health.ask()
    assert (probed.asked[-1], probed.health.state) == (SUSPECTED, UP)


async def test_a_suspicion_is_looked_into_at_once_and_each_change_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "tercet")
    probed = Probed(None, BROKEN, BROKEN)
    await probed.health.ask()
    watch = asyncio.create_task(probed.health.watch())
    for _ in range(3):
        probed.health.suspect("/embed: the connection was reset")
    assert probed.health.state is SUSPECTED
    for _ in range(2000):  # the pause between probes is a minute
        await asyncio.sleep(0.01 if probed.results else 0)
    watch.cancel()
    assert [record.getMessage() for record in caplog.records] == [
        "encoder worker http://gpu-a is up",
        "encoder worker http://gpu-a is suspected: /embed: the connection was reset",
        "encoder worker http://gpu-a is down: the connection was reset",
    ]


@pytest.mark.parametrize("turns", range(4))
async def test_a_watch_that_is_cancelled_while_a_suspicion_comes_ends(turns: int) -> None:
    probed = Probed(None, None)
    await probed.health.ask()
    watch = asyncio.create_task(probed.health.watch())
    await asyncio.sleep(0.01)
    probed.health.suspect("/embed: the connection was reset")
    for _ in range(turns):
        await asyncio.sleep(0)
    watch.cancel()
    await asyncio.wait([watch], timeout=5)
    assert watch.cancelled()
