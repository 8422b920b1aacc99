"""The largest weight of each token id, checked by hand."""

import numpy as np

from tercet.models.lexical.reduction import reduce_sparse, strongest
from tercet.models.representations import SparseRows

CLS, SEP = 0, 2


def test_maximum_per_id_special_ids_and_zeros_dropped() -> None:
    token_ids = np.array([CLS, 9, 5, 9, SEP, CLS, 7, SEP], np.int32)
    weights = np.array([3.0, 0.2, 0.5, 0.4, 2.0, 1.0, 0.0, 1.0], np.float32)
    rows = reduce_sparse(token_ids, weights, np.array([0, 5, 8]), frozenset({CLS, SEP}))
    assert rows.indptr.tolist() == [0, 2, 2]
    assert rows.token_ids.tolist() == [5, 9]
    np.testing.assert_allclose(rows.weights, [0.5, 0.4])
    assert (rows.indptr.dtype, rows.token_ids.dtype, rows.weights.dtype) == (np.int64, np.int32, np.float32)


def test_the_same_id_in_two_texts_stays_apart() -> None:
    rows = reduce_sparse(
        np.array([4, 4, 250_001], np.int32),
        np.array([0.1, 0.7, 0.3], np.float32),
        np.array([0, 1, 1, 3]),
        frozenset(),
    )
    assert rows.indptr.tolist() == [0, 1, 1, 3]
    assert rows.token_ids.tolist() == [4, 4, 250_001]


def test_no_texts_and_nothing_kept() -> None:
    none = reduce_sparse(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(1, np.int64), frozenset())
    assert len(none) == 0
    empty = reduce_sparse(
        np.array([2, 3], np.int32), np.zeros(2, np.float32), np.array([0, 2]), frozenset({2})
    )
    assert empty.indptr.tolist() == [0, 0]


def test_equals_a_dictionary_on_random_input() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(0, 30, 50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    token_ids = random.integers(0, 12, offsets[-1]).astype(np.int32)
    weights = np.maximum(random.normal(size=offsets[-1]), 0).astype(np.float32)
    rows = reduce_sparse(token_ids, weights, offsets, frozenset({0, 1}))
    for row in range(50):
        expected: dict[int, float] = {}
        for position in range(offsets[row], offsets[row + 1]):
            token, weight = int(token_ids[position]), float(weights[position])
            if weight > 0 and token not in (0, 1):
                expected[token] = max(weight, expected.get(token, 0.0))
        found = dict(zip(*(array.tolist() for array in rows.row(row)), strict=True))
        assert found == expected


def test_the_largest_weights_of_each_row_are_kept() -> None:
    """Of equal weights those of the lower ids, and ids still ascend."""
    rows = SparseRows(
        np.array([0, 4, 4, 5]),
        np.array([2, 3, 5, 9, 1], np.int32),
        np.array([0.5, 2, 0.5, 1, 0.25], np.float32),
    )
    kept = strongest(rows, 3)
    assert kept.indptr.tolist() == [0, 3, 3, 4]
    assert kept.token_ids.tolist() == [2, 3, 9, 1]
    assert kept.weights.tolist() == [0.5, 2, 1, 0.25]
    assert strongest(rows, None) is rows
    assert strongest(rows, 4) is rows
