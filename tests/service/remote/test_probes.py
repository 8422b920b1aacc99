"""What is learnt of a server that is probed all the time: from probes, calls in vain, and answers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import pytest

from tercet.service.exceptions import CallFailedError
from tercet.service.remote.circuit import Circuit, CircuitPolicy, ServerState
from tercet.service.remote.probes import Probes
from tercet.service.workers.worker import WORDS

UP, SUSPECTED, DOWN = ServerState.UP, ServerState.SUSPECTED, ServerState.DOWN
BROKEN = CallFailedError("broken", "ended the connection")
HUNG = CallFailedError("silent", "did not answer within 2 s")
NOT_READY = "status 503"
POLICY = CircuitPolicy("encoder worker", WORDS, 1, 0.25, 60)


class Probed:
    """The circuit of a server whose probes have these results, None for a good one."""

    def __init__(self, *results: CallFailedError | str | None) -> None:
        self.results = deque(results)
        self.asked: list[ServerState] = []
        self.given_up = 0
        self.circuit = Circuit("http://gpu-a", POLICY, self._give_up)

    async def probe(self) -> None:
        """Probes it once."""
        await self.circuit.probe(self.answer)

    async def answer(self, state: ServerState) -> str:
        self.asked.append(state)
        result = self.results.popleft()
        if isinstance(result, CallFailedError):
            raise result
        return result or ""

    def _give_up(self) -> None:
        self.given_up += 1


async def states_after(probed: Probed) -> list[ServerState]:
    """The state after each of its probes."""
    states = []
    while probed.results:
        await probed.probe()
        states.append(probed.circuit.state)
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
async def test_states(
    results: list[CallFailedError | str | None], states: list[ServerState], given_up: int
) -> None:
    probed = Probed(*results)
    assert await states_after(probed) == states
    assert probed.given_up == given_up
    assert probed.asked == [SUSPECTED, *states[:-1]]


async def test_a_probe_in_vain_says_nothing_of_a_server_that_answers_calls() -> None:
    probed = Probed(None)
    await probed.probe()

    async def answered_meanwhile(_state: ServerState) -> str:
        probed.circuit.answered()
        raise HUNG

    await probed.circuit.probe(answered_meanwhile)
    assert probed.circuit.state is UP


async def test_a_probe_says_nothing_of_what_is_suspected_since_it_began() -> None:
    probed = Probed(None, None)
    await probed.probe()

    async def suspected_meanwhile(_state: ServerState) -> str:
        probed.circuit.failed("it encodes with another fingerprint")
        return ""

    await probed.circuit.probe(suspected_meanwhile)
    assert probed.circuit.state is SUSPECTED
    await probed.probe()
    assert (probed.asked[-1], probed.circuit.state) == (SUSPECTED, UP)


async def test_a_suspicion_is_looked_into_at_once_and_each_change_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "tercet")
    probed = Probed(None, BROKEN, BROKEN)
    await probed.probe()
    probes = Probes()
    probes.begin(probed.circuit, probed.answer)
    for _ in range(3):
        probed.circuit.failed("/embed: ended the connection")
    assert probed.circuit.state is SUSPECTED
    for _ in range(2000):  # the pause between probes is a minute
        await asyncio.sleep(0.01 if probed.results else 0)
    await probes.end()
    assert [record.getMessage() for record in caplog.records] == [
        "encoder worker http://gpu-a is up",
        "encoder worker http://gpu-a is suspected: /embed: ended the connection",
        "encoder worker http://gpu-a is down: ended the connection",
    ]


@pytest.mark.parametrize("turns", range(4))
async def test_probes_that_are_ended_while_a_suspicion_comes_end(turns: int) -> None:
    probed = Probed(None, None)
    await probed.probe()
    probes = Probes()
    probes.begin(probed.circuit, probed.answer)
    await asyncio.sleep(0.01)
    probed.circuit.failed("/embed: ended the connection")
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await probes.end()
