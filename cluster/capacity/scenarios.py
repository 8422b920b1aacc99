"""How long searches take by a plan: as usual, with a slow replica, and while machines are replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tercet.cluster.capacity.errors import CapacityError
from tercet.cluster.capacity.measured import COLD_MS, WARM_MS
from tercet.cluster.capacity.plan import ROUTER_CORES, Plan
from tercet.cluster.capacity.simulation import Cluster, Outages, Outcome, Scenario, simulate
from tercet.cluster.capacity.spread import BY_QUERY, BY_RUN

MOST_MACHINES = 20_000  # that are simulated
SLOWNESS = 5.0  # of a machine that has a neighbour or a failing disk
REPLACED = Outages(away_seconds=15.0, cold_seconds=30.0, slowness=COLD_MS.value / WARM_MS.value)
"""A replica that is replaced: until it is ready, and then until its files are in memory."""
SCENARIOS = (
    Scenario("as usual"),
    Scenario("hedged", hedged=True),
    Scenario("one slow replica", slowness=SLOWNESS),
    Scenario("one slow replica, hedged", slowness=SLOWNESS, hedged=True),
    Scenario("rolling upgrade", outages=REPLACED),
    Scenario("rolling upgrade, hedged", hedged=True, outages=REPLACED),
)


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a case's searches, None where none was answered; hedged: share of calls for candidates
    that were made twice; failed: of searches that a shard had no replica for.
    """

    case: str
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    hedged: float
    failed: float


def latencies(
    plan: Plan, searches: int, seed: int, told: Callable[[int, int], None] | None = None
) -> list[Latency]:
    """Of each case. told: gets how many searches of how many are simulated. With one replica nothing can be
    hedged. Raises CapacityError for more than MOST_MACHINES.
    """
    if plan.nodes > MOST_MACHINES:
        raise CapacityError(
            f"{plan.nodes:,} machines would be needed, and at most {MOST_MACHINES:,} are simulated: plan for "
            "fewer documents or searches, or with larger machines"
        )
    cluster = _cluster(plan)
    cases = [each for each in SCENARIOS if plan.replicas > 1 or not each.hedged]
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        if told is not None:
            told(done, searches * len(cases))

    return [_latency(case.name, simulate(cluster, case, searches, seed, count)) for case in cases]


def _cluster(plan: Plan) -> Cluster:
    return Cluster(
        shards=plan.shards,
        replicas=plan.replicas,
        cores=plan.machines.cores,
        rounds=(plan.cost.candidates_ms / 1000, plan.cost.scores_ms / 1000),
        routers=ROUTER_CORES * plan.routers,
        router_seconds=plan.router_ms / 1000,
        encoders=plan.encoders.servers,
        encode_seconds=plan.encoders.query_ms / 1000,
        round_trip_seconds=plan.machines.round_trip_ms / 1000,
        searches_per_second=plan.workload.queries_per_second,
        by_query=BY_QUERY,
        by_run=BY_RUN,
    )


def _latency(case: str, outcome: Outcome) -> Latency:
    def milliseconds(share: float) -> float | None:
        return round(1000 * outcome.percentile(share), 2) if outcome.seconds else None

    counted = len(outcome.seconds) + outcome.failed
    return Latency(
        case,
        milliseconds(0.5),
        milliseconds(0.95),
        milliseconds(0.99),
        milliseconds(0.999),
        hedged=round(outcome.hedges / max(1, outcome.calls), 4),
        failed=round(outcome.failed / max(1, counted), 4),
    )
