"""Every dense kind against brute force over the same float16 vectors."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
import pytest

from tercet.index.candidates import DenseOptions
from tercet.index.dense import building
from tercet.index.dense.building import build_dense
from tercet.index.dense.graph import Graph
from tercet.index.dense.index import DenseIndex
from tercet.index.dense.kinds import DenseKind, Device
from tercet.index.documents.row_set import RowSet
from tercet.index.errors import DamagedIndexError, DenseBuildError, DeviceUnavailableError
from tercet.index.files.array_folder import ArrayFolder
from tests.full_disk import largest_file

DOCUMENTS, DIMENSION, CENTRES = 6_000, 32, 40
SMALL_EFFORT = DenseOptions(ef_search=64, nprobe=12)  # so that the graph and the lists are used, not a scan

Vectors = npt.NDArray[np.float16]
Float32 = npt.NDArray[np.float32]


def clustered(seed: int, count: int) -> Float32:
    """Unit vectors around shared centres."""
    centres = np.random.default_rng(0).standard_normal((CENTRES, DIMENSION))
    generator = np.random.default_rng(seed)
    points = centres[generator.integers(0, CENTRES, count)] + 0.7 * generator.standard_normal(
        (count, DIMENSION)
    )
    unit: Float32 = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


def mapped(array: npt.NDArray[Any], folder: Path) -> Vectors:
    np.save(folder / "dense.npy", array.astype(np.float16))
    vectors: Vectors = np.load(folder / "dense.npy", mmap_mode="r")
    return vectors


def built(kind: DenseKind, array: npt.NDArray[Any], folder: Path) -> DenseIndex:
    vectors = mapped(array, folder)
    build_dense(kind, vectors, ArrayFolder(folder))
    return open_index(kind, vectors, folder)


def open_index(kind: DenseKind, vectors: Vectors, folder: Path, device: Device = "cpu") -> DenseIndex:
    return DenseIndex.open(kind, vectors, ArrayFolder(folder), folder, device)


def best(vectors: Vectors, query: Float32, k: int, allowed: npt.NDArray[np.bool_] | None = None) -> set[int]:
    scores = vectors.astype(np.float32) @ query
    if allowed is not None:
        scores[~allowed] = -np.inf
    return set(np.argsort(-scores, kind="stable")[:k].tolist())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[DenseKind, Path]:
    """One folder per kind with the same vectors, five of them equal."""
    points = clustered(1, DOCUMENTS)
    points[[100, 200, 3_000, 5_999]] = points[7]
    kinds: tuple[DenseKind, ...] = ("flat", "hnsw", "ivfpq", "ivfrabitq")
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in kinds}
    for kind, folder in folders.items():
        built(kind, points, folder)
    return folders


def opened(folders: dict[DenseKind, Path], kind: DenseKind) -> tuple[DenseIndex, Vectors]:
    vectors: Vectors = np.load(folders[kind] / "dense.npy", mmap_mode="r")
    return open_index(kind, vectors, folders[kind]), vectors


def test_three_vectors(tmp_path: Path) -> None:
    index = built("flat", np.array([[1, 0], [0, 1], [0.5, 0.5]]), tmp_path)
    rows, scores = index.search(np.array([1, 0.5], np.float32), 2)
    assert rows.tolist() == [0, 2]
    assert scores.tolist() == [1.0, 0.75]
    assert (rows.dtype, scores.dtype) == (np.int64, np.float32)


@pytest.mark.slow
def test_flat_writes_nothing_and_others_write_one_file_and_the_equal_rows(
    folders: dict[DenseKind, Path],
) -> None:
    assert sorted(path.name for path in folders["flat"].iterdir()) == ["dense.npy"]
    files = ["dense.faiss", "dense.npy", "dense_equal_offsets.npy", "dense_equal_rows.npy"]
    assert sorted(path.name for path in folders["hnsw"].iterdir()) == files
    assert sorted(path.name for path in folders["ivfpq"].iterdir()) == files
    assert sorted(path.name for path in folders["ivfrabitq"].iterdir()) == files


def test_graph_and_lists_hold_no_vectors(folders: dict[DenseKind, Path]) -> None:
    assert (folders["hnsw"] / "dense.faiss").stat().st_size < DOCUMENTS * (2 * 32 * 4 + 40)
    assert (folders["ivfpq"] / "dense.faiss").stat().st_size < DOCUMENTS * DIMENSION * 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hnsw", "ivfpq", "ivfrabitq"])
@pytest.mark.parametrize("missing", [1, 5_000])
def test_a_file_cut_off_by_a_full_disk_is_an_error(
    folders: dict[DenseKind, Path], tmp_path: Path, kind: DenseKind, missing: int
) -> None:
    size = (folders[kind] / "dense.faiss").stat().st_size
    vectors = np.load(folders[kind] / "dense.npy", mmap_mode="r")
    with largest_file(size - missing), pytest.raises(OSError, match="File too large"):
        build_dense(kind, vectors, ArrayFolder(tmp_path))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("Error in faiss:\n'k' failed"),
            r"hnsw index of 1200 vectors of 32 .*'k' failed\).*again",
        ),
        (MemoryError("std::bad_alloc"), r"\(std::bad_alloc\): free some memory"),
    ],
)
def test_a_failure_of_faiss_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(building.faiss.IndexHNSWSQ, "add", failing)
    with pytest.raises(DenseBuildError, match=message) as raised:
        build_dense("hnsw", clustered(1, 1200).astype(np.float16), ArrayFolder(tmp_path))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "recall"), [("flat", 1.0), ("hnsw", 0.97), ("ivfpq", 0.95), ("ivfrabitq", 0.95)]
)
@pytest.mark.parametrize("share", [None, 0.6, 0.05, 0.002])
def test_recall_and_scores(
    folders: dict[DenseKind, Path], kind: DenseKind, recall: float, share: float | None
) -> None:
    index, vectors = opened(folders, kind)
    generator = np.random.default_rng(5)
    found_share = []
    for query in clustered(2, 25):
        allowed = None if share is None else generator.random(DOCUMENTS) < share
        rows, scores = index.search(
            query, 10, None if allowed is None else RowSet.of_mask(allowed), SMALL_EFFORT
        )
        if allowed is not None:
            assert allowed[rows].all()
        np.testing.assert_allclose(scores, vectors[rows].astype(np.float32) @ query, atol=1e-6)
        assert (np.diff(scores) <= 0).all()
        wanted = 10 if allowed is None else min(10, int(allowed.sum()))
        assert len(rows) >= wanted
        found_share.append(len(set(rows.tolist()) & best(vectors, query, wanted, allowed)) / max(1, wanted))
    assert np.mean(found_share) >= (1.0 if share in (0.05, 0.002) else recall)


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors each walk over a graph visits."""
    counts: list[int] = []
    real = Graph.walk

    def walk(self: Graph, query: Float32, effort: int) -> Any:
        counts.append(effort)
        return real(self, query, effort)

    monkeypatch.setattr(Graph, "walk", walk)
    return counts


def test_a_walk_keeps_three_for_each_one_wanted_or_as_many_as_it_is_told(
    folders: dict[DenseKind, Path], visited: list[int]
) -> None:
    index, _ = opened(folders, "hnsw")
    visited.clear()
    for options in (DenseOptions(), DenseOptions(100), DenseOptions(1)):
        index.search(clustered(2, 1)[0], 4, None, options)
    assert visited == [60, 100, 40]  # 3 × (4 + 16), and at least 2 ×


def test_a_filtered_graph_is_searched_wider_the_fewer_are_allowed(
    folders: dict[DenseKind, Path], visited: list[int]
) -> None:
    index, vectors = opened(folders, "hnsw")
    visited.clear()  # opening walks once
    query, random = clustered(2, 1)[0], np.random.default_rng(6).random(DOCUMENTS)
    for share in (None, 1.0, 0.5, 0.4):
        index.search(query, 4, None if share is None else RowSet.of_mask(random < share), DenseOptions(40))
    assert visited[:2] == [40, 40]  # 2 × (4 + 16)
    assert visited[2:] == [pytest.approx(40 * 0.625 / share, rel=0.05) for share in (0.5, 0.4)]
    rows, _ = index.search(query, 4, RowSet.of_mask(random < 0.05), DenseOptions(40))
    assert set(rows.tolist()) == best(vectors, query, 4, random < 0.05)
    assert len(visited) == 4  # 300 are scanned


@pytest.mark.parametrize(("nearest", "walks"), [(30, 2), (2_000, 1)])
def test_where_the_near_vectors_are_not_allowed_the_graph_is_searched_wider(
    folders: dict[DenseKind, Path], visited: list[int], nearest: int, walks: int
) -> None:
    """Near the query none of the 30 nearest is allowed, then all; or of the 2,000 nearest none, then all."""
    index, vectors = opened(folders, "hnsw")
    for query in clustered(2, 10):
        visited.clear()
        scores = vectors.astype(np.float32) @ query
        allowed = scores < np.sort(scores)[-nearest]
        rows, _ = index.search(query, 4, RowSet.of_mask(allowed), DenseOptions(40))
        assert set(rows.tolist()) == best(vectors, query, 4, allowed)
        assert len(visited) == walks
        assert visited == sorted(set(visited))


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "ivfrabitq"])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_equal_vectors_are_returned_together(folders: dict[DenseKind, Path], kind: DenseKind, k: int) -> None:
    index, vectors = opened(folders, kind)
    rows, scores = index.search(vectors[7].astype(np.float32), k, None, SMALL_EFFORT)
    assert rows.tolist() == [7, 100, 200, 3_000, 5_999]
    assert len(set(scores.tolist())) == 1


def test_more_ties_than_asked_for_are_all_found(tmp_path: Path) -> None:
    points = clustered(3, 2_000)
    points[500:1_500] = points[0]
    rows, _ = built("flat", points, tmp_path).search(points[0], 4)
    assert rows.tolist() == [0, *range(500, 1_500)]


def test_equal_vectors_score_equal_in_any_index(folders: dict[DenseKind, Path], tmp_path: Path) -> None:
    _, vectors = opened(folders, "flat")
    alone = built("flat", vectors[7:8], tmp_path)
    for query in clustered(9, 20):
        expected = alone.search(query, 1)[1][0]
        for kind in folders:
            allowed = RowSet.of(np.array([7, 200]), DOCUMENTS)
            assert opened(folders, kind)[0].search(query, 2, allowed)[1].tolist() == [expected, expected]
            rows, scores = opened(folders, kind)[0].search(query, DOCUMENTS)
            assert set(scores[np.isin(rows, [7, 100, 200, 3_000, 5_999])].tolist()) == {expected}


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq", "ivfrabitq"])
@pytest.mark.parametrize("share", [None, 0.6])
def test_scores_are_those_of_a_scan_to_the_last_bit(
    folders: dict[DenseKind, Path], kind: DenseKind, share: float | None
) -> None:
    index, _ = opened(folders, kind)
    allowed = None
    if share is not None:
        allowed = RowSet.of_mask(np.random.default_rng(3).random(DOCUMENTS) < share)
    for query in clustered(9, 20):
        every_row, every_score = opened(folders, "flat")[0].search(query, DOCUMENTS)
        exact = dict(zip(every_row.tolist(), every_score.tolist(), strict=True))
        rows, scores = index.search(query, 10, allowed, SMALL_EFFORT)
        assert [exact[row] for row in rows.tolist()] == scores.tolist()


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "ivfrabitq"])
def test_k_past_the_documents(folders: dict[DenseKind, Path], kind: DenseKind) -> None:
    index, vectors = opened(folders, kind)
    rows, _ = index.search(vectors[0].astype(np.float32), DOCUMENTS + 5)
    assert sorted(rows.tolist()) == list(range(DOCUMENTS))
    allowed = RowSet.of_mask(np.arange(DOCUMENTS) % 1_000 == 3)
    rows, _ = index.search(vectors[0].astype(np.float32), 50, allowed, SMALL_EFFORT)
    assert sorted(rows.tolist()) == [3, 1_003, 2_003, 3_003, 4_003, 5_003]


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "ivfrabitq"])
@pytest.mark.parametrize("documents", [0, 1, 40])
def test_few_documents_are_scanned(tmp_path: Path, kind: DenseKind, documents: int) -> None:
    index = built(kind, clustered(4, documents), tmp_path)
    rows, _ = index.search(clustered(5, 1)[0], 100)
    assert sorted(rows.tolist()) == list(range(documents))
    assert not (tmp_path / "dense.faiss").exists()


def test_k_zero_and_nothing_allowed(folders: dict[DenseKind, Path]) -> None:
    index, vectors = opened(folders, "hnsw")
    query = vectors[0].astype(np.float32)
    assert len(index.search(query, 0)[0]) == 0
    assert len(index.search(query, 5, RowSet.of(np.empty(0, np.int64), DOCUMENTS))[0]) == 0


@pytest.mark.parametrize(("dimension", "parts"), [(384, 96), (1_024, 256), (10, 2), (7, 1), (3, 1)])
def test_pq_bytes_divide_the_dimension(dimension: int, parts: int) -> None:
    assert building._pq_bytes(dimension) == parts


def test_negative_scores_are_kept(tmp_path: Path) -> None:
    index = built("flat", np.array([[1, 0], [0, 1]]), tmp_path)
    rows, scores = index.search(np.array([-1, -0.5], np.float32), 5)
    assert rows.tolist() == [1, 0]
    assert scores.tolist() == [-0.5, -1.0]


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq", "ivfrabitq"])
def test_damaged_files_are_named(folders: dict[DenseKind, Path], tmp_path: Path, kind: DenseKind) -> None:
    _, vectors = opened(folders, kind)
    with pytest.raises(DamagedIndexError, match=r"dense\.faiss"):
        open_index(kind, vectors, tmp_path)
    whole = (folders[kind] / "dense.faiss").read_bytes()
    (tmp_path / "dense.faiss").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DamagedIndexError, match=r"dense\.faiss"):
        open_index(kind, vectors, tmp_path)
    (tmp_path / "dense.faiss").write_bytes(whole)
    with pytest.raises(DamagedIndexError, match="the segment has"):
        open_index(kind, vectors[:5_000], tmp_path)


def test_a_missing_gpu_is_an_error(folders: dict[DenseKind, Path]) -> None:
    if hasattr(building.faiss, "StandardGpuResources"):
        pytest.skip("GPU FAISS is installed")
    with pytest.raises(DeviceUnavailableError, match="sees none"):
        open_index("flat", opened(folders, "flat")[1], folders["flat"], device="gpu")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["flat", "ivfpq"])
def test_gpu_agrees_with_cpu(folders: dict[DenseKind, Path], kind: DenseKind) -> None:
    if not hasattr(building.faiss, "StandardGpuResources"):
        pytest.skip("GPU FAISS is not installed")
    cpu, vectors = opened(folders, kind)
    gpu = open_index(kind, vectors, folders[kind], device="gpu")
    for query in clustered(6, 10):
        a, b = (index.search(query, 10, None, SMALL_EFFORT) for index in (cpu, gpu))
        assert len(np.intersect1d(a[0], b[0])) >= (10 if kind == "flat" else 8)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfpq", "ivfrabitq"])
def test_threads_get_the_answers_of_one_thread(folders: dict[DenseKind, Path], kind: DenseKind) -> None:
    index, _ = opened(folders, kind)
    queries = clustered(7, 8)
    options = [DenseOptions(ef_search=64 + 8 * place, nprobe=8 + place) for place in range(8)]
    expected = [index.search(query, 10, None, option) for query, option in zip(queries, options, strict=True)]
    wrong: list[int] = []

    def check(place: int) -> None:
        for _ in range(20):
            found = index.search(queries[place], 10, None, options[place])
            if not all(np.array_equal(a, b) for a, b in zip(found, expected[place], strict=True)):
                wrong.append(place)

    threads = [threading.Thread(target=check, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_searching_leaves_the_threads_of_faiss_as_they_were(folders: dict[DenseKind, Path]) -> None:
    index, vectors = opened(folders, "hnsw")
    before = building.faiss.omp_get_max_threads()
    index.search(vectors[0].astype(np.float32), 5, None, SMALL_EFFORT)
    assert building.faiss.omp_get_max_threads() == before


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivfrabitq"])
def test_opening_and_searching_adds_no_copy_of_the_vectors(tmp_path: Path, kind: DenseKind) -> None:
    folder = tmp_path
    generator = np.random.default_rng(8)
    wide = generator.standard_normal((12_000, 768)).astype(np.float16)  # 18 MB
    vectors = mapped(wide, folder)
    if kind != "flat":
        points = clustered(1, 12_000)  # a cheap graph of as many vectors, then widened by zeros
        vectors = mapped(np.pad(points, ((0, 0), (0, 768 - DIMENSION))), folder)
    build_dense(kind, vectors, ArrayFolder(folder))
    del wide
    before = _private_bytes()
    index = open_index(kind, np.load(folder / "dense.npy", mmap_mode="r"), folder)
    for row in range(0, 12_000, 600):
        index.search(vectors[row].astype(np.float32), 20, None, SMALL_EFFORT)
    # A copy would be of 18 MB; the process around it, with threads of other tests, may take some of its own.
    assert _private_bytes() - before < vectors.nbytes // 2


def _private_bytes() -> int:
    """Anonymous memory of this process; pages of mapped files are not in it."""
    return sum(entry.anonymous for entry in psutil.Process().memory_maps(grouped=True))
