"""Searches over shards in two rounds, simulated: how long they take where some replica is slow or away.

A search waits for a router, for an encoder, for candidates of all shards, and then for scores of all of them,
which come from the replicas that gave the candidates. Searches arrive at random times. What a search takes a
shard is its mean times two measured factors: one of the query, which all shards share, and one of each single
execution.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from tercet.cluster.capacity.queueing import Action, Clock, Station, Task

KEPT = 500  # of a replica's last times, whose 95th percentile says when to hedge
REFRESH = 50  # answers after which that is looked at anew
HEDGE_SHARE = 0.95
WARM_UP = 0.1  # share of the searches that come first and are not counted
TOLD = 100  # searches after which progress is told


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is simulated; times are means, in seconds.

    rounds: of both at one shard; by_query, by_run: factors of a search's time, as evenly spaced quantiles
    with a mean of 1.
    """

    shards: int
    replicas: int
    cores: int
    rounds: tuple[float, float]
    routers: int
    router_seconds: float
    encoders: int
    encode_seconds: float
    round_trip_seconds: float
    searches_per_second: float
    by_query: tuple[float, ...] = (1.0,)
    by_run: tuple[float, ...] = (1.0,)


@dataclass(frozen=True, slots=True)
class Outages:
    """Replicas that go away one after another, and are slower for a while after they are back."""

    away_seconds: float
    cold_seconds: float
    slowness: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens to a cluster.

    slowness: of one replica of the first shard; hedged: another replica is asked for candidates, too, where
    the first takes longer than nearly all calls of the shard's fastest one; extra: the share of calls for
    which that may be done.
    """

    name: str
    slowness: float = 1.0
    hedged: bool = False
    extra: float = 0.1
    outages: Outages | None = None


@dataclass(slots=True)
class Outcome:
    """Times of the searches that were answered, ascending, and how many were not, since a shard had no
    replica; calls for candidates, and how many were made a second time.
    """

    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    calls: int = 0
    hedges: int = 0

    def percentile(self, share: float) -> float:
        """The time that so many of them do not exceed; the least that does where it lies between two."""
        return self.seconds[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


def simulate(
    cluster: Cluster, scenario: Scenario, searches: int, seed: int, told: Callable[[int], None] | None = None
) -> Outcome:
    """So many searches, the same for the same seed. told: gets how many more have come, now and then."""
    return _Simulation(cluster, scenario, seed).outcome(searches, told)


class _Replica(Station):
    """A replica, and how long it took lately.

    patience: seconds that hardly any call of it takes; infinite while that is not known.
    """

    def __init__(self, clock: Clock, cores: int) -> None:
        super().__init__(clock, cores)
        self.patience = math.inf
        self._times: list[float] = []

    def took(self, seconds: float) -> None:
        """A call was answered after so long."""
        self._times.append(seconds)
        if len(self._times) % REFRESH == 0:
            del self._times[:-KEPT]
            self.patience = sorted(self._times)[int(HEDGE_SHARE * len(self._times))]


class _Shard:
    def __init__(self, clock: Clock, cluster: Cluster, drawn: random.Random) -> None:
        self.replicas = [_Replica(clock, cluster.cores) for _ in range(cluster.replicas)]
        self._drawn = drawn

    @property
    def patience(self) -> float:
        """Seconds after which another replica is asked, too: by the fastest, since a slow one may take half
        of all calls.
        """
        return min(each.patience for each in self.replicas)

    def least_loaded(self, without: _Replica | None = None) -> _Replica | None:
        """The replica to ask, of those that are there; any of those that are as loaded."""
        there = [each for each in self.replicas if each.open and each is not without]
        return min(there, key=lambda each: (each.load, self._drawn.random()), default=None)


class _Call:
    """Candidates of one shard: the first answer counts, and what still waits elsewhere is dropped."""

    def __init__(
        self, simulation: _Simulation, shard: _Shard, query: float, done: Callable[[_Replica], None]
    ) -> None:
        self._simulation = simulation
        self._shard = shard
        self._query = query
        self._done = done
        self._tasks: list[Task] = []
        self._ended = False

    def begin(self, first: _Replica) -> None:
        """Asks a replica, and where it takes long another one."""
        simulation = self._simulation
        simulation.found.calls += 1
        self._ask(first)
        patience = self._shard.patience
        if simulation.scenario.hedged and patience < math.inf:
            simulation.clock.after(patience, partial(self._hedge, first))

    def _hedge(self, first: _Replica) -> None:
        found = self._simulation.found
        if self._ended or found.hedges >= self._simulation.scenario.extra * found.calls:
            return
        other = self._shard.least_loaded(without=first)
        if other is not None:
            found.hedges += 1
            self._ask(other)

    def _ask(self, replica: _Replica) -> None:
        answered = partial(self._answered, replica, self._simulation.clock.now)
        task = Task(self._simulation.seconds(0, self._query), answered)
        self._tasks.append(task)
        replica.take(task)

    def _answered(self, replica: _Replica, began: float) -> None:
        replica.took(self._simulation.clock.now - began)
        if self._ended:
            return
        self._ended = True
        for task in self._tasks:
            task.cancelled = True
        self._done(replica)


class _Simulation:
    def __init__(self, cluster: Cluster, scenario: Scenario, seed: int) -> None:
        self.cluster = cluster
        self.scenario = scenario
        self.clock = Clock()
        self.found = Outcome()
        self.routers = Station(self.clock, cluster.routers)
        self.encoders = Station(self.clock, cluster.encoders)
        self._random = random.Random(seed)  # noqa: S311 - no secret
        self.shards = [_Shard(self.clock, cluster, self._random) for _ in range(cluster.shards)]
        self.shards[0].replicas[0].slowness = scenario.slowness

    def drawn(self, quantiles: tuple[float, ...]) -> float:
        """A number of a distribution that is given by its quantiles."""
        place = self._random.random() * (len(quantiles) - 1)
        low = int(place)
        if low + 1 >= len(quantiles):
            return quantiles[low]
        return quantiles[low] + (quantiles[low + 1] - quantiles[low]) * (place - low)

    def seconds(self, turn: int, query: float) -> float:
        """What a shard takes for a round of a search."""
        return self.cluster.rounds[turn] * query * self.drawn(self.cluster.by_run)

    def outcome(self, searches: int, told: Callable[[int], None] | None) -> Outcome:
        """Has so many searches come, and waits for the last of them."""
        moment, first = 0.0, int(WARM_UP * searches)
        for place in range(searches):
            moment += self._random.expovariate(self.cluster.searches_per_second)
            self.clock.after(moment, _Search(self, counted=place >= first).begin)
            if told is not None and (place + 1) % TOLD == 0:
                self.clock.after(moment, partial(told, TOLD))
        if self.scenario.outages is not None:
            self._plan_outages(self.scenario.outages, moment)
        self.clock.run()
        self.found.seconds.sort()
        return self.found

    def _plan_outages(self, outages: Outages, until: float) -> None:
        """Has replicas leave and return, one after another; it begins where some are back and still cold."""
        replicas = [shard.replicas[turn] for turn in range(self.cluster.replicas) for shard in self.shards]
        cold = min(len(replicas) - 1, math.ceil(outages.cold_seconds / outages.away_seconds))
        for place, replica in enumerate(replicas, start=-cold):
            leaves, returns = place * outages.away_seconds, (place + 1) * outages.away_seconds
            if leaves > until:
                return
            self.clock.after(max(0.0, leaves), partial(_set, replica, is_open=False))
            self.clock.after(max(0.0, returns), partial(_set, replica, slowness=outages.slowness))
            self.clock.after(max(0.0, returns + outages.cold_seconds), partial(_set, replica))


def _set(station: Station, *, is_open: bool = True, slowness: float = 1.0) -> None:
    station.open = is_open
    station.slowness = slowness


class _Search:
    """One search, from when it comes to when all scores are there."""

    def __init__(self, simulation: _Simulation, *, counted: bool) -> None:
        self._simulation = simulation
        self._counted = counted
        self._began = 0.0
        self._query = 1.0
        self._replicas: list[_Replica] = []
        self._scores = 0
        self._lost = False

    def begin(self) -> None:
        """Comes to a router."""
        simulation = self._simulation
        self._began = simulation.clock.now
        self._query = simulation.drawn(simulation.cluster.by_query)
        simulation.routers.take(Task(simulation.cluster.router_seconds, self._encode))

    def _encode(self) -> None:
        simulation = self._simulation
        simulation.encoders.take(Task(simulation.cluster.encode_seconds, partial(self._send, self._ask)))

    def _send(self, action: Action) -> None:
        simulation = self._simulation
        simulation.clock.after(simulation.cluster.round_trip_seconds, action)

    def _ask(self) -> None:
        simulation = self._simulation
        for shard in simulation.shards:
            first = shard.least_loaded()
            if first is not None:
                _Call(simulation, shard, self._query, self._proposed).begin(first)
            elif not self._lost:
                self._lost = True
                simulation.found.failed += self._counted

    def _proposed(self, replica: _Replica) -> None:
        self._replicas.append(replica)
        if len(self._replicas) == len(self._simulation.shards):
            self._send(self._ask_scores)

    def _ask_scores(self) -> None:
        for replica in self._replicas:
            replica.take(Task(self._simulation.seconds(1, self._query), self._scored))

    def _scored(self) -> None:
        self._scores += 1
        if self._scores == len(self._replicas) and self._counted:
            self._simulation.found.seconds.append(self._simulation.clock.now - self._began)
