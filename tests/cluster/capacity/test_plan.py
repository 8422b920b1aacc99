"""Plans against sums that a person can do, sizes against a collection that is built, and figures against
their files.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
import pytest

from tercet.cluster.capacity import measured
from tercet.cluster.capacity.measured import DenseFigures
from tercet.cluster.capacity.plan import Workload, document_bytes, plan_for, search_core_ms, token_bytes
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.models.representations import Representations, SparseRows, TokenVectors

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS, TERMS, TOKENS, VOCABULARY = 300, 20, 30, 2000
RESULTS = "benchmarks/results"
ROW = re.compile(r"^\| ([^|]+) \| ([\d,.]+) ([^|]+) \| `([^`]+)` \| (\d{4}-\d\d-\d\d) \|$", re.M)


class Figure(NamedTuple):
    """A measured figure, its file, and its place there: a path within JSON, or words of a page.

    share: what the number there is multiplied by.
    """

    value: float
    file: str
    place: str
    share: float = 1.0


def of_dense(figures: DenseFigures, case: int) -> list[Figure]:
    """The recall, the time and the bytes of a dense kind."""
    file, place = f"{RESULTS}/dense.json", f"cases/{case}"
    return [
        Figure(figures.recall, file, f"{place}/recall@200"),
        Figure(figures.search_ms, file, f"{place}/median_ms"),
        Figure(figures.vector_bytes, file, f"{place}/file_bytes", 1 / 200_000),
    ]


FIGURES = [
    *of_dense(measured.LISTS, 9),
    *of_dense(measured.WIDE_LISTS, 10),
    *of_dense(measured.GRAPH, 1),
    *of_dense(measured.WIDE_GRAPH, 2),
    Figure(measured.SCAN.search_ms, f"{RESULTS}/dense.json", "cases/0/median_ms"),
    Figure(measured.WALKS_MS, "docs/scaling.md", "| walks over graphs | 2.3 ms"),
    Figure(measured.FAR_WALKS_MS, "docs/scaling.md", "84 vectors kept instead of 264 | 8 ms"),
    Figure(measured.POSTINGS_MS, "docs/scaling.md", "| postings | 1.2 ms"),
    Figure(measured.EXACT_MS, "docs/scaling.md", "| exact scores of candidates | 0.5 ms"),
    Figure(measured.REST_MS, "docs/scaling.md", "| all else | 0.8 ms"),
    Figure(measured.FAR_REST_MS, "docs/scaling.md", "segments, a little | 1.5 ms"),
    Figure(measured.BUILD_SECONDS, f"{RESULTS}/scale.json", "documents/1000000/build_seconds"),
    Figure(measured.ROUTER_MS, f"{RESULTS}/router.json", "clients_16/router_ms"),
    Figure(measured.SHARD_MS, f"{RESULTS}/fan_out.json", "ms_a_shard"),
    Figure(measured.TEXT_BYTES, f"{RESULTS}/build.json", "source_bytes", 1 / 11_187_766),
    Figure(
        measured.GPU_TOKENS["bge-m3"],
        f"{RESULTS}/encode-bge-m3-cuda.json",
        "sides/torch/tokens_per_second",
    ),
    Figure(
        measured.GPU_TOKENS["minilm-m3"],
        f"{RESULTS}/encode-minilm-cuda.json",
        "sides/torch/tokens_per_second",
    ),
    Figure(
        measured.CORE_TOKENS["bge-m3"],
        f"{RESULTS}/encode-bge-m3-256.json",
        "sides/int8/tokens_per_processor_second",
    ),
    Figure(
        measured.CORE_TOKENS["minilm-m3"],
        f"{RESULTS}/encode-minilm.json",
        "sides/int8/tokens_per_processor_second",
    ),
    Figure(measured.GPU_QUERY_MS, "docs/performance.md", "One query of 15 tokens takes 2.1 ms"),
    *(
        Figure(value, f"{RESULTS}/late.json", f"results/{dimension}/codecs/{codec}/median_ms")
        for dimension, by_codec in measured.LATE_MS.items()
        for codec, value in by_codec.items()
    ),
]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: f"{figure.file}:{figure.place}")
def test_a_figure_is_in_its_file(figure: Figure) -> None:
    text = (ROOT / figure.file).read_text(encoding="utf-8")
    if not figure.file.endswith(".json"):
        assert figure.place in text
        assert re.search(rf"\b{re.escape(f'{figure.value:g}')}\b", figure.place)
        return
    found = json.loads(text)
    for name in figure.place.split("/"):
        found = found[int(name) if isinstance(found, list) else name]
    assert figure.value == pytest.approx(found * figure.share, rel=0.2), "write it anew"


def test_the_page_has_every_figure() -> None:
    rows = ROW.findall((ROOT / "docs" / "capacity.md").read_text(encoding="utf-8"))
    shown = {(float(value.replace(",", "")), file) for _, value, _, file, _ in rows}
    assert shown == {(figure.value, figure.file) for figure in FIGURES}


def test_multi_m3_takes_twice_as_long_as_minilm() -> None:
    assert "encodes about twice as fast" in (ROOT / "docs" / "multilingual.md").read_text(encoding="utf-8")
    for speeds in (measured.GPU_TOKENS, measured.CORE_TOKENS):
        assert speeds["multi-m3"] == speeds["minilm-m3"] / 2


def encoded() -> Representations:
    generator = np.random.default_rng(0)
    dense = generator.standard_normal((DOCUMENTS, 384)).astype(np.float32)
    tokens = generator.standard_normal((DOCUMENTS * TOKENS, 128)).astype(np.float32)
    ids = np.concatenate(
        [np.sort(generator.choice(VOCABULARY, TERMS, replace=False)) for _ in range(DOCUMENTS)]
    )
    return Representations(
        np.full(DOCUMENTS, TOKENS),
        np.zeros(DOCUMENTS, np.bool_),
        dense / np.linalg.norm(dense, axis=1, keepdims=True),
        SparseRows(
            TERMS * np.arange(DOCUMENTS + 1),
            ids.astype(np.int32),
            generator.uniform(0.1, 1, len(ids)).astype(np.float32),
        ),
        TokenVectors(
            tokens / np.linalg.norm(tokens, axis=1, keepdims=True), TOKENS * np.arange(DOCUMENTS + 1)
        ),
    )


def array_bytes(segment: Path) -> dict[str, int]:
    """Bytes of each array of a small segment."""
    with (segment / "arrays.safetensors").open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return {name: entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items()}


@pytest.mark.slow
@pytest.mark.parametrize("codec", get_args(TokenCodec))
def test_a_document_takes_what_the_formula_says(codec: TokenCodec, tmp_path: Path) -> None:
    """Each part for itself: what each term adds to a segment once is no matter of documents."""
    texts, codebook = encoded(), None
    assert texts.colbert is not None
    if codec in RESIDUAL_BITS:
        codebook = train_codebook(texts.colbert.vectors, RESIDUAL_BITS[codec])
    settings = CollectionSettings(
        "sizes", "none", "none", 384, 128, VOCABULARY, "flat", codec, codebook=codebook
    )
    collection = Collection.create(tmp_path, "sizes", settings)
    with collection.writer() as writer:
        writer.add([Document(f"{row:016}", "x" * 100) for row in range(DOCUMENTS)], texts)
        writer.publish()
    (segment,) = (path.parent for path in tmp_path.rglob("arrays.safetensors"))
    found = array_bytes(segment)
    workload = Workload(DOCUMENTS, TOKENS, 1.0, "minilm-m3", codec)
    stored = found["documents"] // DOCUMENTS
    parts = document_bytes(replace(workload, text_bytes=stored), measured.SCAN)
    by_part = {
        "dense": ("dense",),
        "postings": ("inverted_documents", "inverted_impacts"),
        "weights": ("forward_token_ids", "forward_weights"),
        "tokens": ("token_codes", "token_centroids", "token_scales"),
        "text": (
            *("documents", "ids", "documents_offsets", "ids_offsets", "id_order", "positions"),
            *("token_offsets", "forward_indptr"),
        ),
    }
    for part, arrays in by_part.items():
        size = sum(found.get(name, 0) for name in arrays)
        # A last boundary of 8 bytes each; without token vectors there are none of theirs.
        slack = 8 * len(arrays) + (8 * DOCUMENTS if part == "text" and codec == "none" else 0)
        assert size == pytest.approx(DOCUMENTS * parts[part], abs=slack), part
    assert "inverted_columns" not in found or found["inverted_columns"] == 0


@pytest.mark.parametrize(
    ("codec", "small", "large"),
    [
        ("int8", 132, 1028),
        ("residual4", 66, 250),
        ("residual2", 34, 126),
        ("residual1", 18, 64),
        ("none", 0, 0),
    ],
)
def test_tokens_take_what_was_measured(codec: TokenCodec, small: float, large: float) -> None:
    assert token_bytes(codec, 128) == small
    assert token_bytes(codec, 1024) == large


BILLION = Workload(10**9, 150, 100.0, "minilm-m3", "residual1", text_bytes=400)


def test_a_billion_by_hand() -> None:
    """768 of vectors, 272 of their graph and 300 of postings are 1,340 bytes in memory; a machine may use 0.8
    · 128 GiB.
    """
    plan = plan_for(BILLION)
    assert plan.memory_bytes == 1.34e12
    assert plan.stored_bytes == 10**9 * (1340 + 800 + 150 * 18 + 400 + 16 + 48)
    assert plan.node_disk_bytes == pytest.approx(2 * plan.stored_bytes / 13)
    assert plan.shards == 13  # 12.2 of 109.95 GB
    # At 76.9 million: walks of 2.3 + 5.7 · 75.9 / 9 ms at 0.772 / 1.04 of their time, postings of 1.2 ms a
    # million, 0.5 for exact scores, and of all else 0.8 + 0.7 · 75.9 / 9 ms.
    walks = (2.3 + 5.7 * 75.923 / 9) * 0.772 / 1.04
    rest = 0.8 + 0.7 * 75.923 / 9
    late = 2 * 1.7 * 150 / 200 * 15 / 32
    costs = plan.search_core_ms
    assert costs["candidates"] == pytest.approx(walks + 1.2 * 76.923 + 0.5 + rest / 2, rel=1e-4)
    assert costs["scores"] == pytest.approx(late / 13 + rest / 2, rel=1e-4)
    assert costs["router"] == pytest.approx(4.0 + 11 * 0.114)
    assert plan.replicas == 2
    assert plan.busy == pytest.approx(100 * (costs["candidates"] + costs["scores"]) / 1000 / 16 / 2)
    assert plan.nodes == 26
    assert plan.build_hours["encoding"] == pytest.approx(1.5e11 / (1_499_571 * 8) / 3600)
    assert plan.build_hours["index"] == pytest.approx(2 * 838 * 76.923 / 16 / 3600, rel=1e-4)
    # Two encoders at least, though one GPU with 2.1 ms a query would be 21% busy.
    assert plan.encoders == {"gpu": True, "servers": 2, "query_ms": 2.1, "busy": pytest.approx(0.105)}
    assert plan.unloaded_latency_ms == pytest.approx(sum(costs.values()) + 2.1 + 2 * 0.5)


def test_more_load_takes_more_replicas_and_never_more_shards() -> None:
    few, many = (plan_for(replace(BILLION, queries_per_second=rate)) for rate in (10.0, 1000.0))
    assert few.shards == many.shards
    assert few.replicas == 2 < many.replicas
    assert many.busy <= 0.5


@pytest.mark.parametrize(("recall", "kind"), [(0.96, "ivfrabitq"), (0.99, "hnsw"), (0.999, "flat")])
def test_the_kind_finds_as_much_as_is_wanted(recall: float, kind: str) -> None:
    plan = plan_for(replace(BILLION, recall=recall, queries_per_second=1.0))
    assert plan.dense["kind"] == kind
    found = plan.dense["recall"]
    assert isinstance(found, float)
    assert found >= recall


def test_the_kind_is_that_of_the_fewest_machines() -> None:
    """Short codes take a fifth of the memory and several times the time: they pay where few search."""
    rare, frequent = (
        plan_for(replace(BILLION, recall=0.95, queries_per_second=rate)) for rate in (1.0, 1000.0)
    )
    assert (rare.dense["kind"], frequent.dense["kind"]) == ("ivfrabitq", "hnsw")
    assert rare.memory_bytes == 10**9 * (130 + 300)


@pytest.mark.parametrize(("documents", "milliseconds"), [(1_000_000, 4.60), (4_000_000, 10.3)])
def test_costs_are_near_what_searches_take_on_two_cores(documents: int, milliseconds: float) -> None:
    """benchmarks/scale.py: 60 tokens a document, the wide effort. Processor time is at least the time on a
    clock.
    """
    workload = Workload(documents, 60, 1.0, "minilm-m3", query_tokens=16)
    costs = search_core_ms(workload, measured.WIDE_GRAPH, 1)
    assert milliseconds <= 1.15 * (costs["candidates"] + costs["scores"]) <= 2 * milliseconds


def test_processors_encode_where_there_are_no_gpus() -> None:
    plan = plan_for(replace(BILLION, encoder="bge-m3", gpu=False))
    assert plan.encoders["query_ms"] == pytest.approx(1000 * 15 / 583)
    assert plan.encoders["servers"] == 6  # 2.57 cores, of which half may be busy
    assert plan.build_hours["encoding"] == pytest.approx(1.5e11 / (583 * 16 * plan.shards) / 3600)
