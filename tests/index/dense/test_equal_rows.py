"""Graphs and lists of distinct vectors, and the rows that each stands for."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tercet.index.candidates import DenseOptions
from tercet.index.dense import equal_rows
from tercet.index.dense.building import build_dense
from tercet.index.dense.equal_rows import EqualRows
from tercet.index.dense.index import DenseIndex
from tercet.index.dense.kinds import DenseKind
from tercet.index.documents.row_set import RowSet
from tercet.index.errors import DamagedIndexError
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.memory_arrays import MemoryArrays

DIMENSION = 24

Vectors = npt.NDArray[np.float16]
Int64 = npt.NDArray[np.int64]


def letters(text: str) -> Vectors:
    """A vector for each letter, the same for the same."""
    return np.array([[ord(letter), 1] for letter in text], np.float16)


def groups(text: str) -> list[list[int]] | None:
    found = EqualRows.of(letters(text))
    return None if found is None else [part.tolist() for part in np.split(found.rows, found.offsets[1:-1])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a", None), ("abc", None), ("aa", [[0, 1]]), ("abcabdb", [[0, 3], [1, 4, 6]])],
)
def test_equal_rows_are_found(text: str, expected: list[list[int]] | None) -> None:
    assert groups(text) == expected


def test_different_vectors_with_one_hash_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_rows, "_hashes", lambda vectors: np.zeros(len(vectors), np.uint64))
    assert groups("abcab") == [[0, 3]]  # b is compared with a alone, and stands for itself


def test_many_rows_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_rows, "ROWS_AT_ONCE", 2)
    assert groups("abcabdb") == [[0, 3], [1, 4, 6]]


def test_distinct_rows_and_those_they_stand_for() -> None:
    equal = EqualRows.of(letters("abcabdb"))
    assert equal is not None
    assert equal.firsts.tolist() == [0, 1]
    assert equal.repeated == 3
    assert np.flatnonzero(equal.distinct(7)).tolist() == [0, 1, 2, 5]
    assert equal.among(RowSet.of(np.array([2, 4]), 7)).rows.tolist() == [1, 2]
    rows, owners = equal.expand(np.array([5, 1, 2, 0]))
    assert rows.tolist() == [5, 1, 4, 6, 2, 0, 3]
    assert owners.tolist() == [0, 1, 1, 1, 2, 3, 3]


@pytest.mark.parametrize("offsets", [[0], [0, 1, 2], [0, 3], [1, 2]])
def test_offsets_that_do_not_fit_are_damage(offsets: list[int]) -> None:
    arrays = MemoryArrays()
    EqualRows(np.array([0, 3]), np.array(offsets)).write(arrays)
    with pytest.raises(DamagedIndexError, match="dense_equal_offsets"):
        EqualRows.open(arrays, 7)


def spread(count: int, seed: int) -> npt.NDArray[np.float32]:
    """Unit vectors around centres that all seeds share."""
    centres = np.random.default_rng(0).standard_normal((60, DIMENSION))
    generator = np.random.default_rng(seed)
    points = centres[generator.integers(0, 60, count)] + generator.standard_normal((count, DIMENSION))
    unit: npt.NDArray[np.float32] = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float32)


def built(kind: DenseKind, vectors: Vectors, folder: Path) -> DenseIndex:
    arrays = ArrayFolder(folder)
    build_dense(kind, vectors, arrays)
    return DenseIndex.open(kind, vectors, arrays, folder)


def recall(index: DenseIndex, vectors: Vectors, query: Any, k: int, allowed: RowSet | None) -> float:
    """Of the k best, by score and then row, how many are found; nothing less than the k-th is returned."""
    rows, scores = index.search(query, k, allowed, DenseOptions())
    among = np.arange(len(vectors)) if allowed is None else allowed.rows
    exact = DenseIndex.scanning(vectors[among]).search(query, k)
    assert len(np.unique(rows)) == len(rows)
    assert np.isin(rows, among).all()
    assert np.lexsort((rows, -scores)).tolist() == list(range(len(rows)))
    assert (scores >= scores[k - 1]).all()
    return len(np.intersect1d(rows[:k], among[exact[0][:k]])) / k


@pytest.mark.slow
@pytest.mark.parametrize("equal", [2_000, 16_000])
def test_no_query_is_lost_among_equal_vectors(tmp_path: Path, equal: int) -> None:
    """Near the equal vectors and far from them, with a filter and without."""
    points = spread(24_000, 1)
    generator = np.random.default_rng(2)
    same = np.sort(generator.choice(24_000, equal, replace=False))
    points[same] = points[same[0]]
    vectors = points.astype(np.float16)
    index = built("hnsw", vectors, tmp_path)
    half = RowSet.of_mask(generator.random(24_000) < 0.5)
    queries = np.concatenate([spread(20, 3), points[same[:1]] + 0.3 * spread(20, 4)])
    for k in (20, 200):
        found = [recall(index, vectors, query, k, None) for query in queries]
        assert min(found) >= 0.9
        found = [recall(index, vectors, query, k, half) for query in queries]
        assert min(found) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hnsw", "ivfpq", "ivfrabitq"])
def test_all_rows_that_tie_are_returned(tmp_path: Path, kind: DenseKind) -> None:
    points = spread(6_000, 1)
    same = np.arange(7, 6_000, 5)
    points[same] = points[7]
    vectors = points.astype(np.float16)
    index = built(kind, vectors, tmp_path)
    options = DenseOptions(ef_search=40, nprobe=8)
    query = vectors[7].astype(np.float32)
    assert index.search(query, 3, None, options)[0].tolist() == same.tolist()
    odd = RowSet.of_mask(np.arange(6_000) % 2 == 1)
    assert index.search(query, 3, odd, options)[0].tolist() == same[same % 2 == 1].tolist()
    only = RowSet.of(same[5:6], 6_000)
    assert index.search(query, 3, only, options)[0].tolist() == same[5:6].tolist()


@pytest.mark.parametrize("kind", ["hnsw", "ivfpq", "ivfrabitq"])
@pytest.mark.parametrize("distinct", [1, 30, 999])
def test_few_distinct_vectors_are_scanned(tmp_path: Path, kind: DenseKind, distinct: int) -> None:
    points = np.resize(spread(distinct, 1).astype(np.float16), (5_000, DIMENSION))
    index = built(kind, points, tmp_path)
    assert index.scans
    assert not (tmp_path / "dense.faiss").exists()
    for query in spread(5, 2):
        rows, scores = index.search(query, 8)
        expected = DenseIndex.scanning(points).search(query, 8)
        assert (rows.tolist(), scores.tolist()) == tuple(part.tolist() for part in expected)


def test_distinct_vectors_have_no_arrays_for_equal_ones(tmp_path: Path) -> None:
    built("hnsw", spread(1_200, 1).astype(np.float16), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["dense.faiss"]
