"""How many machines, bytes, GPUs and hours a collection takes, calculated from measured figures."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tercet.cluster.capacity import measured
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec

TERMS_OF_A_TOKEN = 2 / 3  # distinct token ids of a text for each of its tokens
FIXED_BYTES = 16 + 5 * 8 + 8  # an id, five offsets, and the document's position
ROTATED = {128: 128, 1024: 496}  # values of a token vector that residual codecs keep, by its dimension
MEMORY_SHARE, BUSY = 0.8, 0.5  # of a machine's memory and cores that may be used
MEASURED_CORES = 2  # of the machine of all measurements
ROUTER_CORES = 4
LEAST_SERVERS = 2  # of routers and of encoders, so that one may end
ROUND_TRIP_MS = 0.5  # of the network, between two machines


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents, the searches among them, and the machines of shards."""

    documents: int
    tokens: int  # of a document
    queries_per_second: float
    encoder: measured.EncoderName = "bge-m3"
    codec: TokenCodec = "int8"
    recall: float = 0.99  # of dense search
    query_tokens: int = 15
    text_bytes: float = 0  # of a document, its title and metadata included
    bm25: bool = False
    cores: int = 16
    memory_bytes: float = 128 * 2**30
    replicas: int = 2  # of each shard, at least
    gpu: bool = True
    build_gpus: int = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What a workload takes; the names are those of `tercet plan --json`."""

    bytes_per_document: dict[str, float]
    stored_bytes: int  # of all documents, once
    memory_bytes: int
    dense: dict[str, str | float]
    shards: int
    replicas: int
    nodes: int
    node_disk_bytes: int  # with room for the second copy that a merge writes
    documents_per_shard: int
    search_core_ms: dict[str, float]
    busy: float  # share of a shard's cores
    routers: int
    encoders: dict[str, float]
    build_hours: dict[str, float]
    unloaded_latency_ms: float


def plan_for(workload: Workload) -> Plan:
    """The plan with the fewest machines among the dense kinds that reach the recall."""
    approximate = (measured.LISTS, measured.WIDE_LISTS, measured.GRAPH, measured.WIDE_GRAPH)
    enough = [figures for figures in approximate if figures.recall >= workload.recall] or [measured.SCAN]
    return min((_plan(workload, each) for each in enough), key=lambda plan: (plan.nodes, plan.memory_bytes))


def _plan(work: Workload, figures: measured.DenseFigures) -> Plan:
    parts = document_bytes(work, figures)
    resident = {"flat": ["dense"], "hnsw": ["dense", "search"], "ivfrabitq": ["search"]}[figures.kind]
    memory = work.documents * (parts["postings"] + sum(parts[name] for name in resident))
    stored = work.documents * sum(parts.values())
    shards = max(1, math.ceil(memory / MEMORY_SHARE / work.memory_bytes))
    costs = search_core_ms(work, figures, shards)
    load = work.queries_per_second * (costs["candidates"] + costs["scores"]) / 1000 / work.cores
    replicas = max(work.replicas, math.ceil(load / BUSY))
    routing = work.queries_per_second * costs["router"] / 1000 / ROUTER_CORES
    speed = (measured.GPU_TOKENS if work.gpu else measured.CORE_TOKENS)[work.encoder]
    query_ms = measured.GPU_QUERY_MS if work.gpu else 1000 * work.query_tokens / speed
    encoding = work.queries_per_second * query_ms / 1000
    encoders = max(LEAST_SERVERS, math.ceil(encoding / BUSY))
    builders = work.build_gpus if work.gpu else shards * work.cores
    return Plan(
        bytes_per_document=parts,
        stored_bytes=round(stored),
        memory_bytes=round(memory),
        dense={"kind": figures.kind, "recall": figures.recall},
        shards=shards,
        replicas=replicas,
        nodes=shards * replicas,
        node_disk_bytes=round(2 * stored / shards),
        documents_per_shard=math.ceil(work.documents / shards),
        search_core_ms=costs,
        busy=load / replicas,
        routers=max(LEAST_SERVERS, math.ceil(routing / BUSY)),
        encoders={"gpu": work.gpu, "servers": encoders, "query_ms": query_ms, "busy": encoding / encoders},
        build_hours={
            "encoding": work.documents * work.tokens / (speed * builders) / 3600,
            "index": MEASURED_CORES
            * measured.BUILD_SECONDS
            * work.documents
            / 1e6
            / shards
            / work.cores
            / 3600,
        },
        unloaded_latency_ms=sum(costs.values()) + query_ms + 2 * ROUND_TRIP_MS,
    )


def document_bytes(work: Workload, figures: measured.DenseFigures) -> dict[str, float]:
    """Bytes of each part of a stored document, by docs/segment-format.md."""
    dense_dimension, token_dimension = measured.DIMENSIONS[work.encoder]
    terms = TERMS_OF_A_TOKEN * work.tokens * (2 if work.bm25 else 1)
    return {
        "dense": 2.0 * dense_dimension,
        "search": figures.vector_bytes,
        "postings": 3 * terms,  # a document within its block, and an impact
        "weights": 8 * terms,  # a token id and a weight
        "tokens": work.tokens * token_bytes(work.codec, token_dimension),
        "text": work.text_bytes + FIXED_BYTES,
    }


def token_bytes(codec: TokenCodec, dimension: int) -> float:
    """Bytes of a token vector."""
    if codec in RESIDUAL_BITS:
        return ROTATED[dimension] * RESIDUAL_BITS[codec] / 8 + 2
    return {"float16": 2.0 * dimension, "int8": dimension + 4.0, "sign": dimension / 8, "none": 0.0}[codec]


def search_core_ms(work: Workload, figures: measured.DenseFigures, shards: int) -> dict[str, float]:
    """Processor milliseconds of one search: candidates and scores in each shard, and the router.

    Walks and postings grow with a shard's documents; all shards together score the same number of candidates.
    """
    millions = work.documents / shards / 1e6
    dense_dimension, token_dimension = measured.DIMENSIONS[work.encoder]
    if figures.kind == "flat":
        dense = MEASURED_CORES * figures.search_ms * millions * 1e6 / 200_000
    else:
        walks = _grown(measured.WALKS_MS, measured.FAR_WALKS_MS, millions)
        dense = walks * figures.search_ms / measured.WIDE_GRAPH.search_ms
    postings = measured.POSTINGS_MS * millions * (2 if work.bm25 else 1)
    rest = _grown(measured.REST_MS, measured.FAR_REST_MS, millions)
    codec = "residual1" if work.codec == "sign" else work.codec  # whose scores take as long
    late = MEASURED_CORES * measured.LATE_MS[token_dimension].get(codec, 0.0)  # `none` has no scores
    return {
        "candidates": dense * dense_dimension / 384 + postings + measured.EXACT_MS + rest / 2,
        "scores": late * work.tokens / 200 * work.query_tokens / 32 / shards + rest / 2,
        "router": measured.ROUTER_MS + measured.SHARD_MS * (shards - 2),
    }


def _grown(near: float, far: float, millions: float) -> float:
    """On the line through the figures of one million and of ten; below a million as at one."""
    return near + (far - near) * max(0.0, millions - 1) / 9
