"""When a shard is asked no more, and when again."""

import pytest

from cluster.shards.circuit import (
    FAILURES,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    OLD_SECONDS,
    Circuit,
)
from service.exceptions import ShardUnavailableError


class Clock:
    """Seconds that the test lets pass."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_after_some_failures_requests_fail_at_once_but_for_one_after_each_pause() -> None:
    clock = Clock()
    circuit = Circuit("http://one", clock)
    for _ in range(FAILURES):
        circuit.require()
        circuit.failed("refused")
    with pytest.raises(
        ShardUnavailableError, match=r"http://one is not asked for a moment.*refused"
    ) as caught:
        circuit.require()
    assert (caught.value.shard, caught.value.sent) == ("http://one", False)
    clock.seconds += FIRST_PAUSE_SECONDS
    circuit.require()
    with pytest.raises(ShardUnavailableError):
        circuit.require()
    circuit.failed("refused")
    clock.seconds += FIRST_PAUSE_SECONDS
    with pytest.raises(ShardUnavailableError):
        circuit.require()
    clock.seconds += FIRST_PAUSE_SECONDS
    circuit.require()
    circuit.answered()
    circuit.require()


def test_requests_that_were_under_way_as_it_stopped_make_no_pause_longer() -> None:
    clock = Clock()
    circuit = Circuit("one", clock)
    for _ in range(50):
        circuit.require()
    for _ in range(50):
        circuit.failed("silent")
    clock.seconds += FIRST_PAUSE_SECONDS
    circuit.require()


def test_where_nobody_tried_for_a_while_any_may_ask_until_one_fails() -> None:
    """As one of several servers of a shard, that was passed over meanwhile and may be the last one left."""
    clock = Clock()
    circuit = Circuit("one", clock)
    for _ in range(FAILURES):
        circuit.failed("refused")
    clock.seconds += FIRST_PAUSE_SECONDS + OLD_SECONDS
    for _ in range(3):
        circuit.require()
    circuit.failed("refused")
    with pytest.raises(ShardUnavailableError):
        circuit.require()


def test_the_pause_has_an_end() -> None:
    clock = Clock()
    circuit = Circuit("one", clock)
    for _ in range(50):
        circuit.failed("refused")
        clock.seconds += LONGEST_PAUSE_SECONDS
        circuit.require()
    circuit.failed("refused")
    clock.seconds += LONGEST_PAUSE_SECONDS
    circuit.require()


def test_an_answer_between_failures_counts() -> None:
    circuit = Circuit("one", Clock())
    for _ in range(3 * FAILURES):
        circuit.failed("refused")
        circuit.require()
        circuit.answered()
    assert not circuit.is_open
