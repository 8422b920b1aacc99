"""The weighted sum, its presets, and the order of results."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tercet.index.candidates import Weights
from tercet.index.errors import InvalidQueryError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.fusion import (
    best,
    reciprocal_rank_fusion,
    relative_sum,
    relative_sums,
    weighted_sum,
    weights_preset,
)


def test_presets() -> None:
    assert weights_preset("sum") == Weights(1, 1, 1)
    assert weights_preset("miracl") == Weights(1, 0.3, 1)
    assert weights_preset("mldr") == Weights(0.15, 0.5, 0.35)
    assert weights_preset("flag") == Weights(0.4, 0.2, 0.4)
    with pytest.raises(InvalidQueryError, match="'best' is no preset; use sum, miracl, mldr, flag"):
        weights_preset("best")


def test_sum_by_hand() -> None:
    components = np.array([[0.5, 2.0, 0.25], [1.0, 0.0, -1.0]])
    assert weighted_sum(components, Weights(1, 1, 1)).tolist() == [2.75, 0.0]
    assert weighted_sum(components, Weights(2, 0.5, 0)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("preset", [(1, 1, 1), (1, 0.3, 1), (0.15, 0.5, 0.35), (1 / 3, 0, 0.1), (3, -0.7, 2)])
@pytest.mark.parametrize("scale", [1e-6, 0.001, 0.1, 0.7, 3.0, 1e5])
def test_what_orders_is_the_same_for_weights_of_any_scale(preset: tuple[float, ...], scale: float) -> None:
    components = np.round(np.random.default_rng(7).uniform(-1, 3, (1000, 3)), 6)
    sums, scaled = (
        relative_sum(components, Weights(*(factor * weight for weight in preset))) for factor in (1, scale)
    )
    assert np.array_equal(sums, scaled)
    largest = max(map(abs, preset))
    exact = [
        sum(Fraction(weight) * round(value * 1e6) for weight, value in zip(preset, row, strict=True))
        / Fraction(largest)
        for row in components.tolist()
    ]
    np.testing.assert_allclose(sums, np.array([float(value) for value in exact]), rtol=0, atol=1e-6)


def test_reciprocal_ranks_by_hand() -> None:
    components = np.array([[0.9, 0.0, 0.3], [0.5, 2.0, 0.3], [-0.1, 1.0, 0.0], [0.5, 0.0, 0.2]])
    fused = reciprocal_rank_fusion(components, Weights(1, 0.5, 2))
    assert fused.tolist() == pytest.approx(
        [
            1 / 61 + 2 / 61.5,
            1 / 62.5 + 0.5 / 61 + 2 / 61.5,  # equal scores share the mean of their ranks
            1 / 64 + 0.5 / 62,  # a score of 0 says nothing
            1 / 62.5 + 2 / 63,
        ]
    )
    alone = reciprocal_rank_fusion(components, Weights(0, 1, 0))
    assert alone.tolist() == pytest.approx([0, 1 / 61, 1 / 62, 0])
    boosted = np.column_stack([components, np.zeros(4), [0, 0, 0.5, -0.25]])
    assert reciprocal_rank_fusion(boosted, Weights(1, 0.5, 2)).tolist() == pytest.approx(
        (fused + np.array([0, 0, 0.5, -0.25])).tolist()
    )


def test_the_order_of_sides_does_not_tell_equal_ranks_apart() -> None:
    """1/61 + 1/62 + 1/67 has other last bits in another order."""
    orders = np.array([[9, 8, 3], [8, 3, 9], [3, 9, 8], *([rest, rest, rest] for rest in (7, 6, 5, 4))]) / 10
    fused = reciprocal_rank_fusion(orders, Weights(1, 1, 1))
    assert len({1 / 61 + 1 / 62 + 1 / 67, 1 / 62 + 1 / 67 + 1 / 61, 1 / 67 + 1 / 61 + 1 / 62}) > 1
    assert len(set(fused[:3].tolist())) == 1
    scaled = reciprocal_rank_fusion(orders, Weights(1e6, 1e6, 1e6))
    assert scaled.tolist() == (1e6 * fused).tolist()


def test_weights_may_be_integers_or_all_zero() -> None:
    components = np.array([[0.5, 2.0, 0.25], [1.0, 0.0, -1.0]])
    assert relative_sums(components, np.array([[2, 1, 0], [0, 0, 0]])).tolist() == [
        [1_500_000, 1_000_000],
        [0, 0],
    ]
    assert weighted_sum(components, Weights(0, 0, 0)).tolist() == [0, 0]


def test_best_asks_only_for_ids_that_matter() -> None:
    asked: list[list[int]] = []
    ids = [b"e", b"d", b"c", b"b", b"a"]

    def ids_of(places: np.ndarray) -> PackedBytes:
        asked.append(places.tolist())
        return PackedBytes.of(ids).gather(places)

    assert best(np.array([1.0, 5.0, 3.0, 3.0, 3.0]), 2, ids_of).tolist() == [1, 4]
    assert asked.pop() == [2, 3, 4]
    assert best(np.array([5.0, 5.0, 3.0, 3.0, 3.0]), 3, ids_of).tolist() == [1, 0, 4]
    assert asked == [[2, 3, 4], [0, 1]]
    assert best(np.array([1.0, 5.0, 3.0, 2.0, 0.0]), 3, ids_of).tolist() == [1, 2, 3]
    assert len(asked) == 2  # no ties, no ids


@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=30),
    limit=st.integers(0, 35),
    seed=st.integers(0, 100),
)
def test_best_equals_sorting_everything(scores: list[float], limit: int, seed: int) -> None:
    ids = [b"%03d" % number for number in np.random.default_rng(seed).permutation(len(scores))]
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], ids[place]))[:limit]
    found = best(np.array(scores), limit, PackedBytes.of(ids).gather)
    assert found.tolist() == expected
