"""The measured figures of which a plan is made; docs/capacity.md names the file of each."""

from dataclasses import dataclass
from typing import Literal

EncoderName = Literal["bge-m3", "multi-m3", "minilm-m3"]
DIMENSIONS = {"bge-m3": (1024, 1024), "multi-m3": (384, 128), "minilm-m3": (384, 128)}  # dense, tokens


@dataclass(frozen=True, slots=True)
class DenseFigures:
    """A dense kind at one effort, measured on 200,000 vectors of 384 values with 200 neighbours wanted.

    recall: share of them that is found; search_ms: of one search; vector_bytes: beside its values.
    """

    kind: Literal["flat", "hnsw", "ivfrabitq"]
    recall: float
    search_ms: float
    vector_bytes: float


LISTS = DenseFigures("ivfrabitq", 0.924, 1.37, 130)
WIDE_LISTS = DenseFigures("ivfrabitq", 0.968, 2.0, 130)
GRAPH = DenseFigures("hnsw", 0.991, 0.772, 272)
WIDE_GRAPH = DenseFigures("hnsw", 0.997, 1.04, 272)
SCAN = DenseFigures("flat", 1.0, 6.4, 0)

# Milliseconds of a processor for one search: among 1,000,000 documents, and among 10,000,000.
WALKS_MS, FAR_WALKS_MS = 2.3, 8.0
REST_MS, FAR_REST_MS = 0.8, 1.5
POSTINGS_MS = 1.2  # of each 1,000,000 documents
EXACT_MS = 0.5

LATE_MS = {
    128: {"float16": 11.5, "int8": 1.8, "residual4": 1.99, "residual2": 1.78, "residual1": 1.7},
    1024: {"float16": 84.0, "int8": 13.8, "residual4": 8.26, "residual2": 5.98, "residual1": 4.76},
}  # by values of a token vector and codec, on two cores: 32 query tokens, 400 candidates of 200 tokens

BUILD_SECONDS = 838.0  # an index of 1,000,000 documents that are encoded, on two cores
ROUTER_MS, SHARD_MS = 4.0, 0.114  # a router's processor for one search of two shards, and for each shard more
TEXT_BYTES = 2.69  # a token of text, as a line of JSON
GPU_QUERY_MS = 2.1  # one query alone
# Tokens of documents that one GPU, or one processor core in 8 bits, encodes in a second.
GPU_TOKENS = {"bge-m3": 513_679.0, "multi-m3": 1_499_571.0 / 2, "minilm-m3": 1_499_571.0}
CORE_TOKENS = {"bge-m3": 583.0, "multi-m3": 12_814.0 / 2, "minilm-m3": 12_814.0}
