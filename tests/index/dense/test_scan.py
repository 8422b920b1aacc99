"""A comparison of many segments with a query finds the best of all, ties with the last included."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from index.dense import scan as dense_scan
from index.dense.scan import DenseScan, Scanned, products_at, products_of
from index.documents.row_set import RowSet

X86 = platform.machine() in ("x86_64", "AMD64")
Mask = npt.NDArray[np.bool_]


def found_by(scan: DenseScan, k: int) -> dict[tuple[int, int], float]:
    """The k best of what all parts give, and all that tie with the last."""
    parts = [scan.find(part) for part in range(len(scan.costs))]
    triples = [triple for part in parts for triple in zip(*(each.tolist() for each in part), strict=True)]
    lowest = sorted((score for *_, score in triples), reverse=True)[:k][-1:]
    return {(segment, row): score for segment, row, score in triples if score >= lowest[0]}


def brute_force(
    vectors: list[npt.NDArray[np.float16]], masks: list[Mask | None], query: npt.NDArray[np.float32], k: int
) -> dict[tuple[int, int], float]:
    scores = {
        (place, row): float(score)
        for place, (some, mask) in enumerate(zip(vectors, masks, strict=True))
        for row, score in enumerate(some.astype(np.float64) @ query.astype(np.float64))
        if mask is None or mask[row]
    }
    lowest = sorted(scores.values(), reverse=True)[:k][-1:]
    return {place: score for place, score in scores.items() if score >= lowest[0]}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(0, 150), min_size=1, max_size=5),
    k=st.integers(1, 30),
    values=st.sampled_from([1, 2, 9]),
    shares=st.lists(st.sampled_from([None, 0.0, 0.02, 0.5, 1.0]), min_size=5, max_size=5),
    at_once=st.sampled_from([7, 64, 16_384]),
)
def test_the_best_of_all_segments_are_found(
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    sizes: list[int],
    k: int,
    values: int,
    shares: list[float | None],
    at_once: int,
) -> None:
    """Whole numbers, whose products are exact; few of them, so that many rows tie."""
    monkeypatch.setattr(dense_scan, "ROWS_AT_ONCE", at_once)
    random = np.random.default_rng(seed)
    vectors = [random.integers(-values, values + 1, (size, 5)).astype(np.float16) for size in sizes]
    query = random.integers(-3, 4, 5).astype(np.float32)
    masks = [
        None if share is None else random.random(size) < share
        for size, share in zip(sizes, shares, strict=False)
    ]
    expected = brute_force(vectors, masks, query, k)
    for sets in (False, True):
        allowed = [RowSet.of_mask(mask) if sets and mask is not None else mask for mask in masks]
        scanned = [Scanned(place, *each) for place, each in enumerate(zip(vectors, allowed, strict=True))]
        assert found_by(DenseScan(scanned, query, k), k) == expected


def test_later_parts_begin_with_the_floor_of_former_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_scan, "ROWS_AT_ONCE", 100)
    first, later = np.full((100, 3), 2, np.float16), np.ones((300, 3), np.float16)
    scan = DenseScan([Scanned(0, first, None), Scanned(1, later, None)], np.ones(3, np.float32), 10)
    assert [len(scan.find(part)[0]) for part in range(len(scan.costs))] == [100, 0, 0, 0]


@pytest.mark.parametrize("dimension", [1, 15, 64, 100, 384])
def test_equal_rows_have_equal_products_wherever_they_lie(dimension: int) -> None:
    random = np.random.default_rng(dimension)
    row, query = random.standard_normal(dimension), random.standard_normal(dimension).astype(np.float32)
    vectors = random.standard_normal((50, dimension)).astype(np.float16)
    vectors[::7] = row
    products = products_of(vectors, query)
    assert len(set(products[::7].tolist())) == 1
    np.testing.assert_allclose(products, vectors.astype(np.float64) @ query, rtol=1e-4, atol=1e-5)
    rows = random.permutation(50)[:20]
    np.testing.assert_array_equal(products_at(vectors, rows, query), products[rows])


def test_every_float16_has_its_value() -> None:
    """With the processor's conversion, subnormal numbers and the largest ones, too."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    stored = bits.view(np.float16)
    stored = stored[np.isfinite(stored)]
    for count in (1, 64):
        rows = np.zeros((len(stored), count), np.float16)
        rows[:, 0] = stored
        query = np.zeros(count, np.float32)
        query[0] = 1
        np.testing.assert_array_equal(products_of(rows, query), stored.astype(np.float32))


OLDER = """
import numpy as np
from index.dense.half_products import _CONVERTS
from index.dense.scan import products_of
assert not _CONVERTS
stored = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
rows = np.zeros((len(stored), 64), np.float16)
rows[:, 3] = np.where(np.isfinite(stored), stored, 0)
query = np.eye(1, 64, 3, dtype=np.float32)[0]
assert (products_of(rows, query) == rows[:, 3].astype(np.float32)).all()
"""


def test_processors_without_float16_give_the_same() -> None:
    environment = {**os.environ, "NUMBA_CPU_NAME": "x86-64" if X86 else "generic", "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, "-c", OLDER], cwd=Path(__file__).parents[3], env=environment, check=True)
