"""When a server is asked no more, and when again: calls that fail, and probes of a server that does."""

import pytest

from tercet.service.exceptions import CallFailedError
from tercet.service.remote.circuit import (
    FIRST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    SHORT_SECONDS,
    UNWANTED_SECONDS,
    Circuit,
    CircuitPolicy,
    ServerState,
)

FAILURES, LONGEST_PAUSE_SECONDS = 3, 5.0
POLICY = CircuitPolicy("shard", {}, FAILURES, LONGEST_PAUSE_SECONDS)


async def answers(_state: ServerState) -> str:
    """A probe that a server answers."""
    return ""


async def is_silent(_state: ServerState) -> str:
    """A probe in vain."""
    raise CallFailedError("silent", "did not answer within 1 s")


def is_open(circuit: Circuit) -> bool:
    return circuit.state is not ServerState.UP


class Clock:
    """Seconds that the test lets pass."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def circuit(clock: Clock) -> Circuit:
    return Circuit("http://one", POLICY, clock=clock)


async def test_after_some_failures_requests_fail_until_the_shard_answers_who_looks(
    circuit: Circuit,
) -> None:
    for _ in range(FAILURES):
        circuit.require()
        circuit.failed("refused")
    with pytest.raises(CallFailedError, match=r"is not asked for a moment.*refused") as caught:
        circuit.require()
    assert caught.value.kind == "paused"
    await circuit.probe(answers)
    for _ in range(9):
        circuit.require()
    circuit.failed("refused")
    with pytest.raises(CallFailedError):
        circuit.require()
    circuit.answered()
    circuit.require()


async def test_a_shard_that_answers_nobody_but_who_looks_is_looked_at_less_and_less(circuit: Circuit) -> None:
    pauses = []
    for _ in range(FAILURES + 9):
        circuit.failed("silent")
        if is_open(circuit):
            pauses.append(circuit.pause_seconds)
            await circuit.probe(answers)
    assert pauses[:3] == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, 4 * FIRST_PAUSE_SECONDS]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    circuit.answered()
    for _ in range(FAILURES):
        circuit.failed("silent")
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS


async def test_requests_that_were_under_way_as_it_stopped_make_no_pause_longer(circuit: Circuit) -> None:
    for _ in range(50):
        circuit.failed("silent")
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS
    await circuit.probe(answers)
    circuit.require()


async def test_where_no_request_failed_for_a_while_nobody_looks(circuit: Circuit, clock: Clock) -> None:
    """As of one of several servers of a shard, that was passed over and may be the last one left by now."""
    for _ in range(FAILURES):
        circuit.failed("refused")
    clock.seconds += UNWANTED_SECONDS / 2
    with pytest.raises(CallFailedError):
        circuit.require()
    clock.seconds += UNWANTED_SECONDS / 2
    await circuit.probe(is_silent)
    assert circuit.state is ServerState.DOWN
    clock.seconds += UNWANTED_SECONDS / 2
    await circuit.probe(is_silent)
    circuit.require()
    circuit.failed("refused")
    assert is_open(circuit)
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS


def test_short_waits_count_once_they_are_long_together(circuit: Circuit, clock: Clock) -> None:
    began = clock.seconds
    waited = 0
    while not is_open(circuit):
        clock.seconds += 0.25
        circuit.silent("silent", 0.25)
        waited += 1
    assert clock.seconds == began + PATIENCE_SECONDS + (FAILURES - 1) * 0.25
    assert waited == 6


def test_short_waits_between_answers_do_not_count_and_the_shortest_never(
    circuit: Circuit, clock: Clock
) -> None:
    for number in range(100):
        clock.seconds += 0.25
        circuit.silent("silent", 0.25)
        if number % 4 == 2:
            circuit.answered()
    for _ in range(100):
        clock.seconds += SHORT_SECONDS / 2
        circuit.silent("silent", SHORT_SECONDS / 2)
    assert not is_open(circuit)


def test_a_long_wait_counts_by_itself(circuit: Circuit, clock: Clock) -> None:
    for _ in range(FAILURES):
        circuit.silent("silent", PATIENCE_SECONDS)
    assert is_open(circuit)


def test_an_answer_between_failures_counts(circuit: Circuit) -> None:
    for _ in range(3 * FAILURES):
        circuit.failed("refused")
        circuit.require()
        circuit.answered()
    assert not is_open(circuit)
