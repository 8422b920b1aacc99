"""How many machines, GPUs and hours a workload takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tercet.cluster.capacity.costs import (
    DenseChoice,
    SearchCost,
    dense_choices,
    index_core_seconds,
    query_ms,
    search_cost,
    tokens_per_second,
)
from tercet.cluster.capacity.errors import CapacityError
from tercet.cluster.capacity.router import router_ms
from tercet.cluster.capacity.sizes import document_bytes, resident_bytes
from tercet.cluster.capacity.workload import Machines, Workload

ROUTER_CORES = 4
LEAST_SERVERS = 2  # of routers and of encoders, so that one may end


@dataclass(frozen=True, slots=True)
class Encoders:
    """Servers of the encoder: of a GPU each, or of processor cores. busy: the share of them that is used."""

    servers: int
    query_ms: float
    busy: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a workload takes.

    parts: bytes of a document; shards, replicas: of each shard; busy: share of a shard's cores that searches
    use; routers: of ROUTER_CORES cores each; encode_hours, index_hours: of a build from texts, whose two
    parts go on side by side.
    """

    workload: Workload
    machines: Machines
    dense: DenseChoice
    parts: dict[str, float]
    shards: int
    replicas: int
    cost: SearchCost
    busy: float
    routers: int
    router_ms: float
    encoders: Encoders
    encode_hours: float
    index_hours: float

    @property
    def stored_bytes(self) -> float:
        """Of all documents, once."""
        return self.workload.documents * sum(self.parts.values())

    @property
    def memory_bytes(self) -> float:
        """What of them should stay in memory, once."""
        return self.workload.documents * resident_bytes(self.parts, self.dense.kind)

    @property
    def shard_documents(self) -> int:
        """Documents of one shard."""
        return math.ceil(self.workload.documents / self.shards)

    @property
    def nodes(self) -> int:
        """Machines of shards."""
        return self.shards * self.replicas

    @property
    def unloaded_latency_ms(self) -> float:
        """Of a search that waits for no other: the router, the encoder, and two rounds over the shards."""
        alone = self.router_ms + self.encoders.query_ms + self.cost.total_ms
        return alone + 2 * self.machines.round_trip_ms

    @property
    def disk_bytes(self) -> float:
        """Of one machine: a merge writes a second copy before it drops the first."""
        return 2 * self.stored_bytes / self.shards


def plan_for(workload: Workload, machines: Machines) -> Plan:
    """The least number of shards whose part fits into a machine, and the replicas that their load takes; of
    dense kinds that find enough, the one with the fewest machines.

    Raises CapacityError where fewer shards are asked for than fit, or more recall than there is.
    """
    plans, refusal = [], None
    for choice in dense_choices(workload.recall):
        try:
            plans.append(_plan_with(workload, machines, choice))
        except CapacityError as error:
            refusal = refusal or error
    if not plans and refusal is not None:
        raise refusal
    return min(plans, key=lambda plan: (plan.nodes, plan.memory_bytes))


def _plan_with(workload: Workload, machines: Machines, choice: DenseChoice) -> Plan:
    parts = document_bytes(workload, choice.kind)
    memory = workload.documents * resident_bytes(parts, choice.kind)
    room = machines.memory_share * machines.memory_bytes
    least = max(1, math.ceil(memory / room))
    shards = machines.shards or least
    if shards < least:
        raise CapacityError(
            f"{shards} shards would take {memory / shards / 2**30:,.1f} GiB of memory each, of "
            f"{room / 2**30:,.1f} that may be used: take {least} at least, or machines with more memory"
        )
    cost = search_cost(workload, choice, workload.documents / shards, shards)
    load = workload.queries_per_second * cost.total_ms / 1000 / machines.cores
    replicas = max(machines.replicas, math.ceil(load / machines.busy))
    encoders = _encoders(workload, machines)
    routed = router_ms(shards)
    cores = workload.queries_per_second * routed / 1000 / machines.busy
    speed = tokens_per_second(workload, gpu=machines.gpu)
    workers = machines.build_gpus if machines.gpu else shards * machines.cores
    return Plan(
        workload,
        machines,
        choice,
        parts,
        shards,
        replicas,
        cost,
        load / replicas,
        max(LEAST_SERVERS, math.ceil(cores / ROUTER_CORES)),
        routed,
        encoders,
        workload.documents * workload.tokens / (speed * workers) / 3600,
        index_core_seconds(workload.documents / shards) / machines.cores / 3600,
    )


def _encoders(workload: Workload, machines: Machines) -> Encoders:
    """Each query as if it were encoded alone: in batches a GPU takes several times as many."""
    milliseconds = query_ms(workload, gpu=machines.gpu)
    load = workload.queries_per_second * milliseconds / 1000
    servers = max(LEAST_SERVERS, math.ceil(load / machines.busy))
    return Encoders(servers, milliseconds, load / servers)
