"""Bytes that a document takes, by the index format (docs/index-format.md)."""

from __future__ import annotations

from typing import Literal

from tercet.cluster.capacity.measured import GRAPH_BYTES, LIST_BYTES
from tercet.cluster.capacity.workload import Workload
from tercet.index.token_codecs import RESIDUAL_BITS

PlannedKind = Literal["flat", "hnsw", "ivfrabitq"]

POSTING_BYTES = 3  # a document within its block, and an impact
LEXICAL_BYTES = 8  # a token id and a weight
ID_BYTES = 16  # of the id itself; as long as those of most collections
ROW_BYTES = 5 * 8  # offsets of ids, texts, terms and tokens, and the order of ids
POSITION_BYTES = 8
ROTATED = {128: 128, 1024: 496}
"""Values of a token vector that the residual codecs keep, by its dimension."""
RESIDENT: dict[PlannedKind, tuple[str, ...]] = {
    "flat": ("dense", "postings"),
    "hnsw": ("dense", "search", "postings"),
    "ivfrabitq": ("search", "postings"),
}
"""Parts that a search reads anywhere, so they have to be in memory; the rest is read of candidates alone."""


def document_bytes(workload: Workload, kind: PlannedKind) -> dict[str, float]:
    """Bytes of each part of a document that is stored, its text among them."""
    sides = 2 if workload.bm25 else 1
    return {
        "dense": 2.0 * workload.dense_dimension,
        "search": {"flat": 0.0, "hnsw": GRAPH_BYTES.value, "ivfrabitq": LIST_BYTES.value}[kind],
        "postings": sides * POSTING_BYTES * workload.terms,
        "weights": sides * LEXICAL_BYTES * workload.terms,
        "tokens": workload.tokens * token_bytes(workload),
        "text": workload.text_bytes + ID_BYTES + ROW_BYTES + POSITION_BYTES,
    }


def token_bytes(workload: Workload) -> float:
    """Bytes of a token vector by its codec."""
    dimension = workload.token_dimension
    if workload.codec in RESIDUAL_BITS:
        return ROTATED[dimension] * RESIDUAL_BITS[workload.codec] / 8 + 2
    return {"float16": 2.0 * dimension, "int8": dimension + 4.0, "sign": dimension / 8, "none": 0.0}[
        workload.codec
    ]


def resident_bytes(parts: dict[str, float], kind: PlannedKind) -> float:
    """Bytes of a document that have to be in memory."""
    return sum(parts[name] for name in RESIDENT[kind])
