"""Which kind a collection has, and why."""

from pathlib import Path

import psutil
import pytest

from tercet.index.dense import kinds
from tercet.index.dense.kinds import (
    DenseKind,
    bytes_in_graphs,
    collection_kind,
    kind_used,
    segment_kind,
    usual_memory_bytes,
)

BUDGET = bytes_in_graphs(1_000_000, 384)


def kind(vectors: int, memory_bytes: int = BUDGET, **present: int) -> tuple[DenseKind, str]:
    return collection_kind("auto", vectors, 384, memory_bytes, present)  # type: ignore[arg-type]


def test_a_vector_in_a_graph_takes_its_values_and_links() -> None:
    assert bytes_in_graphs(1_000, 384) == 1_000 * (2 * 384 + 272)


def test_half_of_the_memory_is_taken_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kinds, "CONTAINER_LIMIT", tmp_path / "memory.max")
    machine = psutil.virtual_memory().total
    assert usual_memory_bytes() == machine // 2
    for content, expected in (("max\n", machine), ("1000000\n", 1_000_000), (f"{2 * machine}\n", machine)):
        (tmp_path / "memory.max").write_text(content)
        assert usual_memory_bytes() == expected // 2
    vectors = bytes_in_graphs(1, 384)
    (tmp_path / "memory.max").write_text(str(2 * 30_000 * vectors))
    assert collection_kind("auto", 30_000, 384, None, {})[0] == "hnsw"
    assert collection_kind("auto", 30_001, 384, None, {})[0] == "ivfrabitq"


@pytest.mark.parametrize(
    ("vectors", "expected"),
    [(0, "flat"), (20_000, "flat"), (20_001, "hnsw"), (1_000_000, "hnsw"), (1_000_001, "ivfrabitq")],
)
def test_kind_by_size_and_memory(vectors: int, expected: DenseKind) -> None:
    assert kind(vectors, flat=vectors // 2)[0] == expected


def test_what_was_asked_for_is_taken() -> None:
    assert collection_kind("ivfpq", 5, 384, BUDGET, {"hnsw": 9}) == ("ivfpq", "as the collection was created")


def test_a_collection_keeps_the_kind_that_most_of_it_has() -> None:
    assert kind(2_000_000, hnsw=900_000, flat=1_000_000)[0] == "hnsw"
    assert kind(2_000_000, hnsw=300_000, ivfpq=900_000)[0] == "ivfpq"
    assert kind(500, ivfpq=400)[0] == "ivfpq"


def test_reasons_name_numbers_and_budget() -> None:
    assert kind(5_000)[1] == "5,000 vectors; up to 20,000 a scan is as fast as a graph"
    sizes = "2,000,000 vectors with graphs take 1.94 GiB of a budget of 0.97 GiB"
    assert kind(2_000_000)[1] == sizes
    assert kind(2_000_000, ivfrabitq=2_000_000)[1] == f"as most of it was built; {sizes}"
    assert kind(2_000_000, hnsw=2_000_000)[1] == (
        f"as most of it was built; {sizes}; built again, it would be ivfrabitq"
    )


def test_small_segments_of_a_large_collection_are_scanned() -> None:
    assert segment_kind("hnsw", "auto", 3_999, 4_000) == "flat"
    assert segment_kind("hnsw", "auto", 4_000, 4_000) == "hnsw"
    assert segment_kind("hnsw", "hnsw", 1, 4_000) == "hnsw"
    assert [kind_used("hnsw", vectors) for vectors in (999, 1_000)] == ["flat", "hnsw"]
