"""The simulator against queues whose times are known in closed form, and against cases that a person can add
up.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from tercet.cluster.capacity.queueing import Clock, Station, Task
from tercet.cluster.capacity.simulation import Cluster, Outages, Scenario, simulate

TASKS = 60_000


def times(servers: int, load: float) -> list[float]:
    """Of tasks that come at random to servers which take a second on average, each at random, ascending."""
    clock, generator = Clock(), np.random.default_rng(1)
    station, found = Station(clock, servers), list[float]()

    def come(seconds: float) -> None:
        began = clock.now
        station.take(Task(seconds, lambda: found.append(clock.now - began)))

    moments = np.cumsum(generator.exponential(1 / (load * servers), TASKS))
    for moment, seconds in zip(moments.tolist(), generator.exponential(1, TASKS).tolist(), strict=True):
        clock.after(moment, partial(come, seconds))
    clock.run()
    return sorted(found)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_one_server_with_random_times(load: float) -> None:
    """M/M/1: times in the system are exponential, with a mean of 1 / (1 - load)."""
    found = times(1, load)
    mean = 1 / (1 - load)
    assert sum(found) / TASKS == pytest.approx(mean, rel=0.05)
    for share in (0.5, 0.95, 0.99):
        assert found[int(share * TASKS)] == pytest.approx(-mean * math.log(1 - share), rel=0.1)


def test_several_servers_with_one_queue() -> None:
    """M/M/4: by Erlang's C, who waits waits 1 / (servers · (1 - load)) on average."""
    servers, load = 4, 0.6
    offered = servers * load
    last = offered**servers / math.factorial(servers) / (1 - load)
    waits = last / (sum(offered**n / math.factorial(n) for n in range(servers)) + last)
    mean = 1 + waits / (servers * (1 - load))
    assert sum(times(servers, load)) / TASKS == pytest.approx(mean, rel=0.05)


def test_a_cancelled_task_is_dropped_while_it_waits_and_not_in_work() -> None:
    clock, ended = Clock(), list[tuple[int, float]]()
    station = Station(clock, 1)

    def end(place: int) -> None:
        ended.append((place, clock.now))

    tasks = [Task(1.0, partial(end, place)) for place in range(3)]
    for task in tasks:
        station.take(task)
    tasks[0].cancelled = tasks[1].cancelled = True
    clock.run()
    assert ended == [(0, 1.0), (2, 2.0)]
    assert station.load == 0


QUIET = Cluster(
    shards=3,
    replicas=2,
    cores=2,
    rounds=(0.010, 0.004),
    routers=1,
    router_seconds=0.003,
    encoders=1,
    encode_seconds=0.002,
    round_trip_seconds=0.0005,
    searches_per_second=0.1,
)
USUAL = Scenario("as usual")


def test_a_search_alone_takes_the_sum_of_its_steps() -> None:
    outcome = simulate(QUIET, USUAL, 50, seed=0)
    assert len(outcome.seconds) == 45
    assert outcome.seconds == pytest.approx([0.003 + 0.002 + 0.010 + 0.004 + 2 * 0.0005] * 45)
    assert outcome.calls == 50 * 3
    assert (outcome.failed, outcome.hedges) == (0, 0)


def test_a_search_waits_for_the_slowest_of_all_shards() -> None:
    """Of S times that are each between 5 and 15 ms, the largest is below 5 + 10 · share ** (1 / S) with that
    share.
    """
    cluster = Cluster(8, 1, 4, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 0.5, by_run=(0.5, 1.5))
    outcome = simulate(cluster, USUAL, 4000, seed=3)
    for share in (0.1, 0.5, 0.9):
        assert outcome.percentile(share) == pytest.approx(0.005 + 0.010 * share ** (1 / 8), rel=0.02)


def test_what_all_shards_share_is_drawn_once() -> None:
    cluster = Cluster(8, 1, 4, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 0.5, by_query=(0.5, 1.5))
    outcome = simulate(cluster, USUAL, 4000, seed=3)
    for share in (0.1, 0.5, 0.9):
        assert outcome.percentile(share) == pytest.approx(0.005 + 0.010 * share, rel=0.03)


def test_a_second_replica_is_asked_where_the_first_is_slow() -> None:
    """Half of the calls of the first shard meet a replica that takes ten times as long: those are asked
    again.
    """
    cluster = Cluster(2, 2, 8, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 50.0, by_run=(0.9, 1.1))
    slow = simulate(cluster, Scenario("slow", slowness=10), 3000, seed=1)
    hedged = simulate(cluster, Scenario("hedged", slowness=10, hedged=True, extra=0.5), 3000, seed=1)
    bounded = simulate(cluster, Scenario("bounded", slowness=10, hedged=True, extra=0.02), 3000, seed=1)
    assert slow.percentile(0.99) == pytest.approx(0.11, rel=0.05)
    assert hedged.percentile(0.9) < 0.5 * slow.percentile(0.9)
    assert 0 < bounded.hedges <= 0.02 * bounded.calls + 1
    assert bounded.hedges < hedged.hedges


def test_who_is_alone_cannot_be_hedged() -> None:
    cluster = Cluster(2, 1, 2, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 20.0)
    assert simulate(cluster, Scenario("hedged", hedged=True), 500, seed=0).hedges == 0


def test_an_upgrade_fails_searches_where_a_shard_has_one_replica() -> None:
    """With two replicas none fails."""
    upgrade = Scenario("upgrade", outages=Outages(away_seconds=10, cold_seconds=5, slowness=1.5))
    alone = Cluster(4, 1, 4, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 40.0)
    away = simulate(alone, upgrade, 4000, seed=2)
    # Four shards are away for 10 s each, one after the other, of which the first is back and cold at the
    # beginning: 30 of 100 s, of which the first 10 are not counted.
    assert away.failed / (away.failed + len(away.seconds)) == pytest.approx(20 / 90, rel=0.15)
    both = Cluster(4, 2, 4, (0.010, 0.0), 1, 0.0, 1, 0.0, 0.0, 40.0)
    replaced = simulate(both, upgrade, 4000, seed=2)
    assert replaced.failed == 0
    assert replaced.percentile(0.99) == pytest.approx(0.015, rel=0.01), "a replica that is back is cold"


def test_the_same_seed_gives_the_same_times() -> None:
    cluster = Cluster(3, 2, 2, (0.01, 0.002), 1, 0.001, 1, 0.001, 0.001, 100.0, by_run=(0.5, 1.5))
    first, again, other = (simulate(cluster, USUAL, 500, seed).seconds for seed in (7, 7, 8))
    assert first == again != other
