"""Every measured number that a plan is made of, with the file that it comes from.

`docs/capacity.md` shows them, and a test holds them against their files: a number of a result that moves by
more than a fifth is to be written here anew.
"""

from __future__ import annotations

from dataclasses import dataclass

RESULTS = "benchmarks/results"


@dataclass(frozen=True, slots=True)
class Measured:
    """A number that was measured.

    file, place: where it stands: the path within a JSON file, joined by `/`, or words of a page; share: what
    the number there is multiplied by, such as one over the documents it counts; date: of the measurement.
    """

    what: str
    value: float
    unit: str
    file: str
    place: str
    date: str
    share: float = 1.0


def _of_dense(what: str, value: float, unit: str, place: str, share: float = 1.0) -> Measured:
    """Of 200,000 vectors of 384 values, 200 neighbours wanted."""
    return Measured(what, value, unit, f"{RESULTS}/dense.json", place, "2026-11-28", share)


def _of_late(codec: str, dimension: int, value: float) -> Measured:
    what = f"late interaction, {codec}, {dimension} values"
    place = f"results/{dimension}/codecs/{codec}/median_ms"
    return Measured(what, value, "ms", f"{RESULTS}/late.json", place, "2026-11-28")


def _of_scaling(what: str, value: float, unit: str, place: str) -> Measured:
    return Measured(what, value, unit, "docs/scaling.md", place, "2026-11-25")


def _of_encoding(what: str, value: float, file: str, place: str, date: str = "2026-11-27") -> Measured:
    return Measured(what, value, "tokens/s", f"{RESULTS}/{file}.json", place, date)


VECTORS = 200_000
"""Of the measurements of dense kinds."""

GRAPH_BYTES = _of_dense("graph", 272, "bytes a vector", "cases/1/file_bytes", 1 / VECTORS)
LIST_BYTES = _of_dense("lists of 1-bit codes", 130, "bytes a vector", "cases/9/file_bytes", 1 / VECTORS)
SCAN_MS = _of_dense("scan of 200,000 vectors", 6.4, "ms", "cases/0/median_ms")
GRAPH_RECALL = _of_dense("recall of a graph, effort 432", 0.991, "of 200", "cases/1/recall@200")
GRAPH_MS = _of_dense("walk over a graph, effort 432", 0.772, "ms", "cases/1/median_ms")
WIDE_GRAPH_RECALL = _of_dense("recall of a graph, effort 648", 0.997, "of 200", "cases/2/recall@200")
WIDE_GRAPH_MS = _of_dense("walk over a graph, effort 648", 1.04, "ms", "cases/2/median_ms")
LIST_RECALL = _of_dense("recall of lists, 64 of them", 0.924, "of 200", "cases/9/recall@200")
LIST_MS = _of_dense("search of lists, 64 of them", 1.37, "ms", "cases/9/median_ms")
WIDE_LIST_RECALL = _of_dense("recall of lists, 128 of them", 0.968, "of 200", "cases/10/recall@200")
WIDE_LIST_MS = _of_dense("search of lists, 128 of them", 2, "ms", "cases/10/median_ms")

WALKS_MS = _of_scaling("graphs among 1,000,000", 2.3, "ms of a processor", "| walks over graphs | 2.3 ms")
FAR_WALKS_MS = _of_scaling(
    "graphs among 10,000,000", 8.0, "ms of a processor", "84 vectors kept instead of 264 | 8 ms"
)
POSTINGS_MS = _of_scaling("postings of 1,000,000", 1.2, "ms of a processor", "| postings | 1.2 ms")
EXACT_MS = _of_scaling("exact scores of candidates", 0.5, "ms", "| exact scores of candidates | 0.5 ms")
REST_MS = _of_scaling("all else among 1,000,000", 0.8, "ms", "| all else | 0.8 ms")
FAR_REST_MS = _of_scaling("all else among 10,000,000", 1.5, "ms", "segments, a little | 1.5 ms")

LATE_MS = {
    (codec, dimension): _of_late(codec, dimension, value)
    for dimension, values in (
        (128, {"float16": 11.5, "int8": 1.8, "residual4": 1.99, "residual2": 1.78, "residual1": 1.7}),
        (1024, {"float16": 84, "int8": 13.8, "residual4": 8.26, "residual2": 5.98, "residual1": 4.76}),
    )
    for codec, value in values.items()
}
"""By codec and values of a token vector: 32 query tokens, 400 candidates of 200 tokens, on both of two cores.
"""

BUILD_SECONDS = Measured(
    "index of 1,000,000, without encoding",
    838,
    "s on two cores",
    f"{RESULTS}/scale.json",
    "documents/1000000/build_seconds",
    "2026-11-28",
)
ROUTER_MS = Measured(
    "router before two shards, 16 clients",
    4.0,
    "ms of a processor",
    f"{RESULTS}/router.json",
    "clients_16/router_ms",
    "2026-11-28",
)
ASKING_MS = Measured(
    "asking one shard more, twice",
    0.114,
    "ms of a processor",
    f"{RESULTS}/fan_out.json",
    "ms_a_shard",
    "2026-11-27",
)
TEXT_BYTES = Measured(
    "texts of 50,000 passages as lines of JSON",
    2.69,
    "bytes a token",
    f"{RESULTS}/build.json",
    "source_bytes",
    "2026-11-21",
    1 / 11_187_766,
)

GPU_BGE_M3 = _of_encoding(
    "BGE-M3 on an H200, mixed lengths", 513_679, "encode-bge-m3-cuda", "sides/torch/tokens_per_second"
)
GPU_MINILM = _of_encoding(
    "MiniLM's shape on an H200, mixed lengths",
    1_499_571,
    "encode-minilm-cuda",
    "sides/torch/tokens_per_second",
)
CPU_BGE_M3 = _of_encoding(
    "BGE-M3 in 8 bits, a processor's second",
    583,
    "encode-bge-m3-256",
    "sides/int8/tokens_per_processor_second",
)
CPU_MINILM = _of_encoding(
    "MiniLM's shape in 8 bits, a processor's second",
    12_814,
    "encode-minilm",
    "sides/int8/tokens_per_processor_second",
    "2026-11-28",
)
GPU_QUERY_MS = Measured(
    "one query alone on an H200, BGE-M3",
    2.1,
    "ms",
    "docs/performance.md",
    "One query of 15 tokens takes 2.1 ms",
    "2026-11-27",
)
SLOWER_THAN_MINILM = Measured(
    "multi-m3 beside minilm-m3",
    2.0,
    "times as slow",
    "docs/multilingual.md",
    "encodes about twice as fast",
    "2026-11-24",
)
