"""Plans against sums that a person can do, sizes against a collection that is built, and constants against
their files.
"""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tercet.cluster.capacity import measured
from tercet.cluster.capacity.costs import dense_choices, search_cost
from tercet.cluster.capacity.errors import CapacityError
from tercet.cluster.capacity.measured import Measured
from tercet.cluster.capacity.plan import plan_for
from tercet.cluster.capacity.sizes import document_bytes, resident_bytes, token_bytes
from tercet.cluster.capacity.workload import Machines, Workload
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.token_codecs import RESIDUAL_BITS, TokenCodec
from tercet.index.token_vectors.codebook_training import train_codebook
from tercet.models.representations import Representations, SparseRows, TokenVectors

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS, TERMS, TOKENS, VOCABULARY = 300, 20, 30, 2000
CONSTANTS = [
    *(value for value in vars(measured).values() if isinstance(value, Measured)),
    *measured.LATE_MS.values(),
]
ROW = re.compile(r"^\| ([^|]+) \| ([\d,.]+) ([^|]+) \| `([^`]+)` \| (\d{4}-\d\d-\d\d) \|$", re.M)


@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda constant: constant.what)
def test_a_constant_is_in_its_file(constant: Measured) -> None:
    text = (ROOT / constant.file).read_text(encoding="utf-8")
    if constant.file.endswith(".json"):
        found = json.loads(text)
        for name in constant.place.split("/"):
            found = found[int(name) if isinstance(found, list) else name]
        assert constant.value == pytest.approx(found * constant.share, rel=0.2), "write it anew"
    else:
        assert constant.place in text
        assert (
            re.search(rf"\b{re.escape(f'{constant.value:g}')}\b", constant.place) or "twice" in constant.place
        )


def test_the_page_has_every_constant() -> None:
    rows = ROW.findall((ROOT / "docs" / "capacity.md").read_text(encoding="utf-8"))
    shown = {
        (what, float(value.replace(",", "")), unit, file, date) for what, value, unit, file, date in rows
    }
    assert shown == {(each.what, each.value, each.unit, each.file, each.date) for each in CONSTANTS}


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
    assert workload.terms == TERMS
    stored = found["documents"] // DOCUMENTS
    parts = document_bytes(replace(workload, text_bytes=stored), "flat")
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
    assert token_bytes(Workload(1, 1, 1.0, "minilm-m3", codec)) == small
    assert token_bytes(Workload(1, 1, 1.0, "bge-m3", codec)) == large


BILLION = Workload(10**9, 150, 100.0, "minilm-m3", text_bytes=400)


def test_a_billion_by_hand() -> None:
    """768 of vectors, 272 of their graph and 300 of postings are 1,340 bytes in memory; a machine may use 0.8
    · 128 GiB.
    """
    machines = Machines()
    plan = plan_for(BILLION, machines)
    assert resident_bytes(plan.parts, plan.dense.kind) == 768 + 272 + 300
    assert plan.memory_bytes == 1.34e12
    assert plan.stored_bytes == 10**9 * (1340 + 800 + 150 * 18 + 400 + 16 + 48)
    assert plan.shards == 13  # 12.2 of 109.95 GB
    # At 76.9 million: walks of 2.3 + 5.7 · 75.9 / 9 ms at 0.772 / 1.04 of their time, postings of 1.2 ms a
    # million, 0.5 for exact scores, and of all else 0.8 + 0.7 · 75.9 / 9 ms.
    walks = (2.3 + 5.7 * 75.923 / 9) * 0.772 / 1.04
    rest = 0.8 + 0.7 * 75.923 / 9
    late = 2 * 1.7 * 150 / 200 * 15 / 32
    assert plan.cost.candidates_ms == pytest.approx(walks + 1.2 * 76.923 + 0.5 + rest / 2, rel=1e-4)
    assert plan.cost.scores_ms == pytest.approx(late / 13 + rest / 2, rel=1e-4)
    busy = 100 * plan.cost.total_ms / 1000 / 16
    assert plan.replicas == 2
    assert plan.busy == pytest.approx(busy / 2)
    assert plan.nodes == 26
    assert plan.encode_hours == pytest.approx(1.5e11 / (1_499_571 * 8) / 3600)
    assert plan.index_hours == pytest.approx(2 * 838 * 76.923 / 16 / 3600, rel=1e-4)
    # Two encoders at least, though one GPU with 2.1 ms a query would be 21% busy.
    assert (plan.encoders.servers, plan.encoders.busy) == (2, pytest.approx(0.105))


def test_more_load_takes_more_replicas_and_never_more_shards() -> None:
    few, many = (plan_for(replace(BILLION, queries_per_second=rate), Machines()) for rate in (10.0, 1000.0))
    assert few.shards == many.shards
    assert few.replicas == 2 < many.replicas
    assert many.busy <= 0.5


def test_more_shards_may_be_asked_for_and_fewer_not() -> None:
    assert plan_for(BILLION, Machines(shards=40)).shards == 40
    with pytest.raises(CapacityError, match="take 13 at least"):
        plan_for(BILLION, Machines(shards=12))


@pytest.mark.parametrize(
    ("recall", "kinds"),
    [
        (0.96, ["ivfrabitq", "hnsw", "hnsw"]),
        (0.99, ["hnsw", "hnsw"]),
        (0.995, ["hnsw"]),
        (0.999, ["flat"]),
    ],
)
def test_kinds_are_those_that_find_enough_or_a_scan(recall: float, kinds: list[str]) -> None:
    assert [choice.kind for choice in dense_choices(recall)] == kinds


def test_the_kind_is_that_of_the_fewest_machines() -> None:
    """Short codes take a fifth of the memory and several times the time: they pay where few search."""
    rare, frequent = (
        plan_for(replace(BILLION, recall=0.95, queries_per_second=rate), Machines()) for rate in (1.0, 1000.0)
    )
    assert (rare.dense.kind, frequent.dense.kind) == ("ivfrabitq", "hnsw")
    assert rare.memory_bytes == 10**9 * (130 + 300)


def test_recall_above_one_cannot_be_had() -> None:
    with pytest.raises(CapacityError, match="a scan finds all"):
        dense_choices(1.01)


@pytest.mark.parametrize(("documents", "milliseconds"), [(1_000_000, 4.60), (4_000_000, 10.3)])
def test_costs_are_near_what_searches_take_on_two_cores(documents: int, milliseconds: float) -> None:
    """benchmarks/scale.py: 60 tokens a document, the wide effort. Processor time is at least the time on a
    clock.
    """
    workload = Workload(documents, 60, 1.0, "minilm-m3", recall=0.995, query_tokens=16)
    cost = search_cost(workload, dense_choices(0.995)[0], documents, 1)
    assert milliseconds <= 1.15 * cost.total_ms <= 2 * milliseconds


def test_processors_encode_where_there_are_no_gpus() -> None:
    plan = plan_for(replace(BILLION, encoder="bge-m3"), Machines(gpu=False))
    assert plan.encoders.query_ms == pytest.approx(1000 * 15 / 583)
    assert plan.encoders.servers == 6  # 2.57 cores, of which half may be busy
    assert plan.encode_hours == pytest.approx(1.5e11 / (583 * 16 * plan.shards) / 3600)


def test_latency_without_waiting_is_the_sum_of_its_parts() -> None:
    plan = plan_for(Workload(1_000_000, 200, 10), Machines(round_trip_ms=3))
    parts = (plan.router_ms, plan.encoders.query_ms, plan.cost.candidates_ms, plan.cost.scores_ms, 3, 3)
    assert plan.unloaded_latency_ms == pytest.approx(sum(parts))
