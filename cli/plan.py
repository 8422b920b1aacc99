"""`tercet plan`: what a collection of some size takes, on paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tercet.cli.flag_groups import with_flag_groups
from tercet.cli.output import console, print_json, print_pairs
from tercet.cluster.capacity.workload import EncoderName
from tercet.index.token_codecs import TokenCodec

if TYPE_CHECKING:
    from tercet.cluster.capacity.plan import Plan

GIB = 2**30


def _between(low: float, high: float) -> Callable[[str], float]:
    """Reads a number of these limits, which `nan` is not."""

    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise typer.BadParameter(f"{text} is no number from {low:g} to {high:g}")
        return value

    return number


@dataclass(frozen=True, kw_only=True)
class MachineFlags:
    """The machines of a plan."""

    cores: Annotated[int, typer.Option(min=1, help="Cores of a shard's machine.")] = 16
    memory_gib: Annotated[float, typer.Option(parser=_between(0.5, 100_000), help="Its memory.")] = 128
    shards: Annotated[
        int | None,
        typer.Option(min=1, help="Shards; by default as few as memory allows.", show_default=False),
    ] = None
    replicas: Annotated[int, typer.Option(min=1, help="Of each shard, at least.")] = 2
    busy: Annotated[
        float,
        typer.Option(parser=_between(0.05, 0.95), help="Share of cores that the load may take."),
    ] = 0.5
    gpu: Annotated[bool, typer.Option("--gpu/--no-gpu", help="Whether encoders have GPUs.")] = True
    build_gpus: Annotated[int, typer.Option(min=1, help="GPUs of a build.")] = 8
    round_trip_ms: Annotated[
        float, typer.Option(parser=_between(0, 1000), help="Of the network, between two machines.")
    ] = 0.5


@with_flag_groups
def plan(
    documents: Annotated[float, typer.Option(parser=_between(1, 1e12), help="How many, such as 1e9.")],
    tokens: Annotated[int, typer.Option(min=1, max=8192, help="Of a document.")],
    qps: Annotated[float, typer.Option(parser=_between(0.001, 1e6), help="Searches a second.")],
    codec: Annotated[TokenCodec, typer.Option(help="How token vectors are stored.")] = "residual1",
    recall: Annotated[
        float,
        typer.Option(
            parser=_between(0.01, 1.0),
            help="Of dense search: share of the 200 nearest that is found.",
        ),
    ] = 0.99,
    encoder: Annotated[EncoderName, typer.Option(help="Its sizes and its speed.")] = "bge-m3",
    bm25: Annotated[bool, typer.Option("--bm25", help="With BM25 as a fourth side.")] = False,
    text_bytes: Annotated[
        int | None,
        typer.Option(
            min=0, help="Of a document's text, as stored. [default: 2.7 a token]", show_default=False
        ),
    ] = None,
    query_tokens: Annotated[int, typer.Option(min=1, max=8192, help="Of a query.")] = 15,
    *,
    machines: MachineFlags,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a collection of some size takes: bytes, machines, GPUs, hours of building, and the latency
    of a search that waits for no other.

    All of it is calculated from figures measured on small machines; docs/capacity.md says which, and what is
    left out.
    """
    from tercet.cluster.capacity.measured import TEXT_BYTES
    from tercet.cluster.capacity.plan import plan_for
    from tercet.cluster.capacity.workload import Machines, Workload

    workload = Workload(
        round(documents),
        tokens,
        qps,
        encoder,
        codec,
        recall,
        query_tokens,
        round(TEXT_BYTES.value * tokens) if text_bytes is None else text_bytes,
        bm25,
    )
    found = plan_for(
        workload,
        Machines(
            machines.cores,
            round(machines.memory_gib * GIB),
            machines.busy,
            replicas=machines.replicas,
            shards=machines.shards,
            gpu=machines.gpu,
            build_gpus=machines.build_gpus,
            round_trip_ms=machines.round_trip_ms,
        ),
    )
    if as_json:
        print_json(_report(found))
    else:
        _print_plan(found)


def _report(plan: Plan) -> dict[str, Any]:
    return {
        "bytes_per_document": {name: round(size, 1) for name, size in plan.parts.items()},
        "stored_bytes": round(plan.stored_bytes),
        "memory_bytes": round(plan.memory_bytes),
        "dense": {"kind": plan.dense.kind, "recall": plan.dense.recall},
        "shards": plan.shards,
        "replicas": plan.replicas,
        "nodes": plan.nodes,
        "node_disk_bytes": round(plan.disk_bytes),
        "documents_per_shard": plan.shard_documents,
        "search_core_ms": {
            "candidates": round(plan.cost.candidates_ms, 2),
            "scores": round(plan.cost.scores_ms, 2),
            "router": round(plan.router_ms, 2),
        },
        "busy": round(plan.busy, 3),
        "routers": plan.routers,
        "encoders": {
            "gpu": plan.machines.gpu,
            "servers": plan.encoders.servers,
            "query_ms": round(plan.encoders.query_ms, 2),
            "busy": round(plan.encoders.busy, 3),
        },
        "build_hours": {"encoding": round(plan.encode_hours, 2), "index": round(plan.index_hours, 2)},
        "unloaded_latency_ms": round(plan.unloaded_latency_ms, 2),
    }


def _print_plan(plan: Plan) -> None:
    machines = plan.machines
    parts = ", ".join(f"{name} {size:,.0f}" for name, size in plan.parts.items())
    encoders = "GPUs" if machines.gpu else "cores"
    who = f"{machines.build_gpus} GPUs" if machines.gpu else "all cores of one replica of each shard"
    print_pairs(
        {
            "a document": f"{sum(plan.parts.values()):,.0f} bytes: {parts}",
            "stored": f"{_large(plan.stored_bytes)}, once",
            "in memory": f"{_large(plan.memory_bytes)}, once: dense, search and postings",
            "dense search": f"{plan.dense.kind}, recall {plan.dense.recall} as measured",
            "shards": f"{plan.shards} of {plan.shard_documents:,} documents",
            "machines": f"{plan.nodes}: {plan.replicas} replicas of each, {machines.cores} cores, "
            f"{machines.memory_bytes / GIB:,.0f} GiB, {_large(plan.disk_bytes)} of disk; "
            f"{plan.busy:.0%} busy",
            "a search": f"{plan.cost.candidates_ms:,.1f} + {plan.cost.scores_ms:,.1f} ms of a core in each "
            f"shard, {plan.router_ms:,.1f} in the router",
            "routers": f"{plan.routers} of 4 cores",
            "encoders": f"{plan.encoders.servers} {encoders}, {plan.encoders.query_ms:,.1f} ms a query, "
            f"{plan.encoders.busy:.0%} busy",
            "latency": f"{plan.unloaded_latency_ms:,.1f} ms for a search that waits for no other",
            "building": f"{plan.encode_hours:,.1f} h of encoding by {who}, {plan.index_hours:,.1f} h of "
            "indexing beside",
        },
        console(),
    )


def _large(size: float) -> str:
    return f"{size / 1e12:,.2f} TB" if size >= 1e12 else f"{size / 1e9:,.2f} GB"
