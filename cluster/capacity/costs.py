"""Processor time of a search in a shard, of an encoded text, and of an index that is built."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.cluster.capacity import measured
from tercet.cluster.capacity.errors import CapacityError
from tercet.cluster.capacity.measured import Measured
from tercet.cluster.capacity.sizes import PlannedKind
from tercet.cluster.capacity.workload import Workload

MILLION = 1e6
SIGN_LIKE = "residual1"  # whose scores take as long as those of `sign`
CORES = 2  # of the machine of all measurements, which late interaction and scans use both
LATE_TOKENS, LATE_QUERY = 200, 32
"""Tokens of a document and of a query in the measurement of late interaction."""
MEASURED_DIMENSION = 384  # of dense vectors


@dataclass(frozen=True, slots=True)
class DenseChoice:
    """A dense kind at an effort: the recall that was measured, and the milliseconds of a search."""

    kind: PlannedKind
    recall: float
    milliseconds: Measured


APPROXIMATE = (
    DenseChoice("ivfrabitq", measured.LIST_RECALL.value, measured.LIST_MS),
    DenseChoice("ivfrabitq", measured.WIDE_LIST_RECALL.value, measured.WIDE_LIST_MS),
    DenseChoice("hnsw", measured.GRAPH_RECALL.value, measured.GRAPH_MS),
    DenseChoice("hnsw", measured.WIDE_GRAPH_RECALL.value, measured.WIDE_GRAPH_MS),
)
SCAN = DenseChoice("flat", 1.0, measured.SCAN_MS)


def dense_choices(recall: float) -> list[DenseChoice]:
    """The kinds and efforts that find so much, or a scan where none does. Raises CapacityError for a recall
    above 1.
    """
    if recall > 1:
        raise CapacityError(f"recall {recall} cannot be had: a scan finds all, which is 1")
    return [choice for choice in APPROXIMATE if choice.recall >= recall] or [SCAN]


@dataclass(frozen=True, slots=True)
class SearchCost:
    """Processor time of a shard for a search: of its candidates, and of scores of those that survive."""

    candidates_ms: float
    scores_ms: float

    @property
    def total_ms(self) -> float:
        """Both rounds."""
        return self.candidates_ms + self.scores_ms


def search_cost(workload: Workload, choice: DenseChoice, documents: float, shards: int) -> SearchCost:
    """Of a shard of so many documents, one of so many.

    Walks and postings grow by what was measured for each million; survivors of the cut over all shards are
    shared among them.
    """
    millions = documents / MILLION
    dense = _dense_ms(choice, millions) * workload.dense_dimension / MEASURED_DIMENSION
    postings = measured.POSTINGS_MS.value * millions * (2 if workload.bm25 else 1)
    rest = _grown(measured.REST_MS, measured.FAR_REST_MS, millions)
    return SearchCost(
        dense + postings + measured.EXACT_MS.value + rest / 2,
        late_ms(workload) / shards + rest / 2,
    )


def late_ms(workload: Workload) -> float:
    """Processor time of late interaction with the candidates of one search, in milliseconds."""
    if workload.codec == "none":
        return 0.0
    codec = SIGN_LIKE if workload.codec == "sign" else workload.codec
    together = CORES * measured.LATE_MS[codec, workload.token_dimension].value
    return together * workload.tokens / LATE_TOKENS * workload.query_tokens / LATE_QUERY


def _dense_ms(choice: DenseChoice, millions: float) -> float:
    if choice.kind == "flat":
        return CORES * choice.milliseconds.value * millions * MILLION / measured.VECTORS
    beside = choice.milliseconds.value / measured.WIDE_GRAPH_MS.value
    return beside * _grown(measured.WALKS_MS, measured.FAR_WALKS_MS, millions)


def _grown(near: Measured, far: Measured, millions: float) -> float:
    """By the line through what is known of one million and of ten; below a million as at one."""
    return near.value + (far.value - near.value) * max(0.0, millions - 1) / 9


def query_ms(workload: Workload, *, gpu: bool) -> float:
    """What encoding one query takes alone: of a GPU, or of a processor."""
    if gpu:
        return measured.GPU_QUERY_MS.value
    return 1000 * workload.query_tokens / tokens_per_second(workload, gpu=False)


def tokens_per_second(workload: Workload, *, gpu: bool) -> float:
    """Tokens of documents that one GPU, or one processor core, encodes in a second."""
    if workload.encoder == "bge-m3":
        return (measured.GPU_BGE_M3 if gpu else measured.CPU_BGE_M3).value
    of_minilm = (measured.GPU_MINILM if gpu else measured.CPU_MINILM).value
    return of_minilm / (measured.SLOWER_THAN_MINILM.value if workload.encoder == "multi-m3" else 1)


def index_core_seconds(documents: float) -> float:
    """Processor seconds of an index of documents that are encoded."""
    return CORES * measured.BUILD_SECONDS.value * documents / MILLION
