"""`tercet plan`: what a collection of some size takes, on paper."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from tercet.cli.output import console, print_json, print_pairs
from tercet.cluster.capacity.measured import TEXT_BYTES, EncoderName
from tercet.cluster.capacity.plan import Plan, Workload, plan_for
from tercet.index.token_codecs import TokenCodec


def _between(low: float, high: float) -> Callable[[str], float]:
    """Reads a number of these limits, which `nan` is not."""

    def number(text: str) -> float:
        with contextlib.suppress(ValueError):
            if low <= (value := float(text)) <= high:
                return value
        raise typer.BadParameter(f"{text} is no number from {low:g} to {high:g}")

    return number


def plan(
    documents: Annotated[float, typer.Option(parser=_between(1, 1e12), help="How many, such as 1e9.")],
    tokens: Annotated[int, typer.Option(min=1, max=8192, help="Of a document.")],
    qps: Annotated[float, typer.Option(parser=_between(0.001, 1e6), help="Searches a second.")],
    *,
    codec: Annotated[TokenCodec, typer.Option(help="How token vectors are stored.")] = "int8",
    recall: Annotated[float, typer.Option(parser=_between(0.01, 1), help="Of dense search.")] = 0.99,
    encoder: Annotated[EncoderName, typer.Option(help="Its sizes and its speed.")] = "bge-m3",
    bm25: Annotated[bool, typer.Option("--bm25", help="With BM25 as a fourth side.")] = False,
    text_bytes: Annotated[int | None, typer.Option(min=0, help="Of a text; else 2.7 a token.")] = None,
    query_tokens: Annotated[int, typer.Option(min=1, max=8192, help="Of a query.")] = 15,
    cores: Annotated[int, typer.Option(min=1, help="Cores of a shard's machine.")] = 16,
    memory_gib: Annotated[float, typer.Option(parser=_between(0.5, 100_000), help="Its memory.")] = 128,
    replicas: Annotated[int, typer.Option(min=1, help="Of each shard, at least.")] = 2,
    gpu: Annotated[bool, typer.Option("--gpu/--no-gpu", help="Whether encoders have GPUs.")] = True,
    build_gpus: Annotated[int, typer.Option(min=1, help="GPUs of a build.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a collection of some size takes: bytes, machines, GPUs, hours of building, and the latency
    of a search that waits for no other.

    All of it is calculated from figures measured on small machines; docs/capacity.md says which.
    """
    work = Workload(
        *(round(documents), tokens, qps, encoder, codec, recall, query_tokens),
        text_bytes=round(TEXT_BYTES * tokens) if text_bytes is None else text_bytes,
        bm25=bm25,
        cores=cores,
        memory_bytes=memory_gib * 2**30,
        replicas=replicas,
        gpu=gpu,
        build_gpus=build_gpus,
    )
    if as_json:
        print_json(asdict(plan_for(work)))
    else:
        print_pairs(_lines(plan_for(work), work), console())


def _lines(plan: Plan, work: Workload) -> dict[str, str]:
    costs, encoders, hours = plan.search_core_ms, plan.encoders, plan.build_hours
    parts = ", ".join(f"{name} {size:,.0f}" for name, size in plan.bytes_per_document.items())
    builders = f"{work.build_gpus} GPUs" if work.gpu else "all cores of one replica of each shard"
    return {
        "a document": f"{sum(plan.bytes_per_document.values()):,.0f} bytes: {parts}",
        "stored": f"{_large(plan.stored_bytes)}, once",
        "in memory": f"{_large(plan.memory_bytes)}, once: dense, search and postings",
        "dense search": f"{plan.dense['kind']}, recall {plan.dense['recall']} as measured",
        "shards": f"{plan.shards} of {plan.documents_per_shard:,} documents",
        "machines": f"{plan.nodes}: {plan.replicas} replicas of each, {work.cores} cores, "
        f"{work.memory_bytes / 2**30:,.0f} GiB, {_large(plan.node_disk_bytes)} of disk; {plan.busy:.0%} busy",
        "a search": f"{costs['candidates']:,.1f} + {costs['scores']:,.1f} ms of a core in each shard, "
        f"{costs['router']:,.1f} in the router",
        "routers": f"{plan.routers} of 4 cores",
        "encoders": f"{encoders['servers']} {'GPUs' if work.gpu else 'cores'}, "
        f"{encoders['query_ms']:,.1f} ms a query, {encoders['busy']:.0%} busy",
        "latency": f"{plan.unloaded_latency_ms:,.1f} ms for a search that waits for no other",
        "building": f"{hours['encoding']:,.1f} h of encoding by {builders}, "
        f"{hours['index']:,.1f} h of indexing beside",
    }


def _large(size: float) -> str:
    return f"{size / 1e12:,.2f} TB" if size >= 1e12 else f"{size / 1e9:,.2f} GB"
