"""When a shard is asked no more, and when again."""

import pytest

from tercet.cluster.shards.circuit import (
    FAILURES,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    SHORT_SECONDS,
    UNWANTED_SECONDS,
    Circuit,
)
from tercet.service.exceptions import ShardUnavailableError


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
    return Circuit("http://one", clock)


def test_after_some_failures_requests_fail_until_the_shard_answers_who_looks(
    circuit: Circuit,
) -> None:
    for _ in range(FAILURES):
        circuit.require()
        circuit.failed("refused")
    with pytest.raises(
        ShardUnavailableError, match=r"http://one is not asked for a moment.*refused"
    ) as caught:
        circuit.require()
    assert (caught.value.shard, caught.value.sent) == ("http://one", False)
    circuit.let_ask(answers=True)
    for _ in range(9):
        circuit.require()
    circuit.failed("refused")
    with pytest.raises(ShardUnavailableError):
        circuit.require()
    circuit.answered()
    circuit.require()


def test_a_shard_that_answers_nobody_but_who_looks_is_looked_at_less_and_less(circuit: Circuit) -> None:
    pauses = []
    for _ in range(FAILURES + 9):
        circuit.failed("silent")
        if circuit.is_open:
            pauses.append(circuit.pause_seconds)
            circuit.let_ask(answers=True)
    assert pauses[:3] == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, 4 * FIRST_PAUSE_SECONDS]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS
    circuit.answered()
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS


def test_requests_that_were_under_way_as_it_stopped_make_no_pause_longer(circuit: Circuit) -> None:
    for _ in range(50):
        circuit.failed("silent")
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS
    circuit.let_ask(answers=True)
    circuit.require()


def test_where_no_request_failed_for_a_while_nobody_looks(circuit: Circuit, clock: Clock) -> None:
    """As of one of several servers of a shard, that was passed over and may be the last one left by now."""
    for _ in range(FAILURES):
        circuit.failed("refused")
    clock.seconds += UNWANTED_SECONDS / 2
    with pytest.raises(ShardUnavailableError):
        circuit.require()
    clock.seconds += UNWANTED_SECONDS / 2
    assert circuit.is_wanted
    clock.seconds += UNWANTED_SECONDS / 2
    assert not circuit.is_wanted
    circuit.let_ask(answers=False)
    circuit.require()
    circuit.failed("refused")
    assert circuit.is_open
    assert circuit.pause_seconds == FIRST_PAUSE_SECONDS


def test_short_waits_count_once_they_are_long_together(circuit: Circuit, clock: Clock) -> None:
    began = clock.seconds
    waited = 0
    while not circuit.is_open:
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
    assert not circuit.is_open


def test_a_long_wait_counts_by_itself(circuit: Circuit, clock: Clock) -> None:
    for _ in range(FAILURES):
        circuit.silent("silent", PATIENCE_SECONDS)
    assert circuit.is_open


def test_an_answer_between_failures_counts(circuit: Circuit) -> None:
    for _ in range(3 * FAILURES):
        circuit.failed("refused")
        circuit.require()
        circuit.answered()
    assert not circuit.is_open
