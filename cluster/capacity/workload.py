"""What a plan is for: documents and queries, how they are stored, and the machines that there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tercet.index.token_codecs import TokenCodec

EncoderName = Literal["bge-m3", "multi-m3", "minilm-m3"]
TERMS_OF_A_TOKEN = 2 / 3
"""Distinct token ids of a text for each of its tokens, as docs/operations.md counts them: 100 of 150."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Documents and the searches among them.

    tokens: of a document; recall: of dense search, of the 200 nearest; text_bytes: of a document's text,
    title and metadata as stored.
    """

    documents: int
    tokens: int
    queries_per_second: float
    encoder: EncoderName = "bge-m3"
    codec: TokenCodec = "residual1"
    recall: float = 0.99
    query_tokens: int = 15
    text_bytes: int = 0
    bm25: bool = False

    @property
    def terms(self) -> float:
        """Distinct token ids of a document."""
        return TERMS_OF_A_TOKEN * self.tokens

    @property
    def dense_dimension(self) -> int:
        """Values of a dense vector."""
        return 1024 if self.encoder == "bge-m3" else 384

    @property
    def token_dimension(self) -> int:
        """Values of a token vector."""
        return 1024 if self.encoder == "bge-m3" else 128


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines of a plan, and how full they may get. What is here is chosen, not measured.

    busy: share of its cores that a machine is loaded with; memory_share: of its memory that the index may
    take; replicas: of each shard, at least; gpu: whether encoders have GPUs; build_gpus: for building, where
    there are any.
    """

    cores: int = 16
    memory_bytes: int = 128 << 30
    busy: float = 0.5
    memory_share: float = 0.8
    replicas: int = 2
    shards: int | None = None
    gpu: bool = True
    build_gpus: int = 8
    round_trip_ms: float = 0.5
