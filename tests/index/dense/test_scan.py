"""A comparison of many segments with a query finds the best of all, ties with the last included."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tercet.index.dense import scan as dense_scan
from tercet.index.dense.scan import DenseScan, Scanned
from tercet.index.documents.row_set import RowSet
from tercet.index.native.kernels import dense_vectors

Mask = npt.NDArray[np.bool_]


def stored(place: int, vectors: npt.NDArray[np.float16], allowed: RowSet | Mask | None) -> Scanned:
    """A segment of these vectors."""
    return Scanned(place, dense_vectors(vectors), len(vectors), allowed)


def found_by(scan: DenseScan, k: int) -> dict[tuple[int, int], float]:
    """The k best of what all parts give, and all that tie with the last."""
    parts = [part() for part in scan.parts]
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
        pairs = enumerate(zip(vectors, allowed, strict=True))
        scanned = [stored(place, *each) for place, each in pairs]
        assert found_by(DenseScan(scanned, query, k), k) == expected


def test_later_parts_begin_with_the_floor_of_former_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense_scan, "ROWS_AT_ONCE", 100)
    first, later = np.full((100, 3), 2, np.float16), np.ones((300, 3), np.float16)
    scan = DenseScan([stored(0, first, None), stored(1, later, None)], np.ones(3, np.float32), 10)
    assert [len(part()[0]) for part in scan.parts] == [100, 0, 0, 0]
