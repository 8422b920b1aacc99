"""Which server of a shard is asked first, and when one takes long, by a clock that the tests move."""

from __future__ import annotations

import pytest

from tercet.cluster.shards.budget import MOST, HedgeBudget
from tercet.cluster.shards.times import ENOUGH, RECENT_SECONDS, ShardTimes


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def times_of(servers: int) -> tuple[ShardTimes, Clock]:
    clock = Clock()
    return ShardTimes(servers, clock), clock


def test_the_writing_server_is_first_at_equal_times() -> None:
    times, _ = times_of(3)
    assert times.order() == [0, 1, 2]
    for server in (2, 1, 0):
        times.answered(server, "candidates", 0.010 if server else 0.011)
    assert times.order() == [0, 1, 2]


def test_who_waits_less_or_answers_sooner_is_first() -> None:
    times, _ = times_of(2)
    times.servers[0].waiting = 1
    assert times.order() == [1, 0]
    times.servers[1].waiting = 1
    assert times.order() == [0, 1]
    for _ in range(3):
        times.answered(0, "candidates", 0.1)
        times.answered(1, "candidates", 0.01)
    assert times.order() == [1, 0]


def test_slowness_is_that_of_like_requests() -> None:
    times, _ = times_of(2)
    for _ in range(20):
        times.answered(0, "facets", 2.0)  # slow for every server
        times.answered(1, "candidates", 0.01)
    assert times.servers[0].slowness == pytest.approx(times.servers[1].slowness)


def test_what_was_long_ago_is_forgotten() -> None:
    times, clock = times_of(2)
    times.servers[0].silent()
    assert times.order() == [1, 0]
    clock.now += 60
    assert times.order() == [0, 1]
    for _ in range(5):
        times.servers[0].silent()
    clock.now += 10
    assert times.order() == [1, 0]  # the longer, the more often


def test_long_is_what_the_fastest_one_seldom_takes() -> None:
    times, clock = times_of(2)
    for _ in range(ENOUGH):
        assert times.long_seconds("candidates") is None
        times.answered(0, "candidates", 0.1)
        times.answered(1, "hits", 0.001)
    assert times.long_seconds("candidates") == 0.1
    for number in range(100):
        times.answered(1, "candidates", 0.001 * (number + 1))
    assert times.long_seconds("candidates") == pytest.approx(0.095)
    clock.now += RECENT_SECONDS + 1
    assert times.long_seconds("candidates") is None


def test_the_budget_is_one_of_twenty() -> None:
    budget, taken = HedgeBudget(), 0
    for number in range(1, 1001):
        budget.asked()
        taken += budget.take()
        assert taken <= 0.05 * number
    assert taken == 50
    for _ in range(1000):
        budget.asked()
    assert sum(budget.take() for _ in range(100)) == MOST  # what is saved up is bounded
