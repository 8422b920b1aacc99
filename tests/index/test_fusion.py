"""The weighted sum, its presets, and the order of results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.candidates import Weights
from index.errors import InvalidQueryError
from index.fusion import best, weighted_sum, weights_preset


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


def test_best_asks_only_for_ids_that_matter() -> None:
    asked: list[list[int]] = []
    ids = [b"e", b"d", b"c", b"b", b"a"]

    def ids_of(places: np.ndarray) -> list[bytes]:
        asked.append(places.tolist())
        return [ids[place] for place in places]

    assert best(np.array([1.0, 5.0, 3.0, 3.0, 3.0]), 3, ids_of).tolist() == [1, 4, 3]
    assert asked == [[1, 2, 3, 4]]
    assert best(np.array([1.0, 5.0, 3.0, 2.0, 0.0]), 3, ids_of).tolist() == [1, 2, 3]
    assert len(asked) == 1  # no ties, no ids


@given(
    scores=st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), max_size=30),
    limit=st.integers(0, 35),
    seed=st.integers(0, 100),
)
def test_best_equals_sorting_everything(scores: list[float], limit: int, seed: int) -> None:
    ids = [b"%03d" % number for number in np.random.default_rng(seed).permutation(len(scores))]
    expected = sorted(range(len(scores)), key=lambda place: (-scores[place], ids[place]))[:limit]
    found = best(np.array(scores), limit, lambda places: [ids[place] for place in places])
    assert found.tolist() == expected
