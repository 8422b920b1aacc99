"""Walks over a graph beside those of FAISS, which built it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tercet.index.dense.building import build_dense
from tercet.index.dense.graph import Graph
from tercet.index.dense.library import INDEX_FILE, faiss, read_index
from tercet.index.files.array_folder import ArrayFolder
from tercet.models.representations import Float32

DOCUMENTS, DIMENSION = 5_000, 24

Vectors = npt.NDArray[np.float16]


def points(seed: int, count: int) -> Float32:
    found = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    unit: Float32 = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Vectors]:
    """FAISS's index without vectors, and these."""
    folder, vectors = tmp_path_factory.mktemp("graph"), points(1, DOCUMENTS).astype(np.float16)
    build_dense("hnsw", vectors, ArrayFolder(folder))
    return read_index(folder / INDEX_FILE, "hnsw", DOCUMENTS, DIMENSION), vectors


def with_vectors(index: Any, vectors: Vectors) -> Any:
    """FAISS's index with a copy of the vectors, which it compares itself."""
    storage = faiss.IndexScalarQuantizer(DIMENSION, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    storage.add(vectors.astype(np.float32))
    index.storage, index.own_fields = storage, False
    return storage


@pytest.mark.parametrize("effort", [1, 40, 600])
def test_a_walk_finds_what_that_of_faiss_finds(built: tuple[Any, Vectors], effort: int) -> None:
    index, vectors = built
    graph, storage = Graph(index, vectors), with_vectors(index, vectors)
    same = 0
    for query in points(2, 30):
        _, rows = index.search(query[None], effort, params=faiss.SearchParametersHNSW(efSearch=effort))
        found, scores = graph.walk(query, effort)
        assert len(set(found.tolist())) == len(found) == effort
        np.testing.assert_allclose(scores, vectors[found].astype(np.float32) @ query, atol=1e-6)
        same += len(set(found.tolist()) & set(rows[0].tolist()))
    del storage
    assert same >= 0.99 * 30 * effort


def test_an_effort_above_all_nodes_finds_them_all(built: tuple[Any, Vectors]) -> None:
    index, vectors = built
    rows, _ = Graph(index, vectors).walk(points(3, 1)[0], 2 * DOCUMENTS)
    assert sorted(rows.tolist()) == list(range(DOCUMENTS))


def test_upper_levels_lead_to_the_nearest_of_them(built: tuple[Any, Vectors]) -> None:
    """A walk that keeps one vector begins where the level above the last has its best."""
    index, vectors = built
    assert index.hnsw.max_level >= 1
    levels = faiss.vector_to_array(index.hnsw.levels)
    above = np.flatnonzero(levels > 1)
    for row in above[:20].tolist():
        rows, _ = Graph(index, vectors).walk(vectors[row].astype(np.float32), 1)
        assert rows.tolist() == [row]


def test_documents_without_links_are_not_met(tmp_path: Path) -> None:
    """Of equal vectors the graph has the first; a walk over all it has does not return the others."""
    vectors = points(4, 1_500).astype(np.float16)
    vectors[[5, 900, 1_499]] = vectors[2]
    build_dense("hnsw", vectors, ArrayFolder(tmp_path))
    rows, _ = Graph(read_index(tmp_path / INDEX_FILE, "hnsw", 1_500, DIMENSION), vectors).walk(
        points(5, 1)[0], 1_500
    )
    assert sorted(rows.tolist()) == sorted(set(range(1_500)) - {5, 900, 1_499})
