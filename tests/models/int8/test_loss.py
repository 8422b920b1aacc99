"""Figures of what int8 keeps, on numbers checked by hand."""

import numpy as np
import pytest

from tercet.models.int8.loss import kept, poor_sides
from tercet.models.representations import Representations, SparseRows, TokenVectors


def made(
    dense: list[list[float]], rows: list[dict[int, float]], tokens: list[list[float]]
) -> Representations:
    counts = [len(row) for row in rows]
    return Representations(
        np.full(len(rows), 3),
        np.zeros(len(rows), np.bool_),
        np.array(dense, np.float32),
        SparseRows(
            np.concatenate([[0], np.cumsum(counts)]),
            np.array([id for row in rows for id in row], np.int32),
            np.array([weight for row in rows for weight in row.values()], np.float32),
        ),
        TokenVectors(np.array(tokens, np.float32), np.array([0, len(tokens), len(tokens)])),
    )


def test_by_hand() -> None:
    """Weights: |0.5-0.3| + |0.2-0.2| + 0.1 of 1.3 in all; the same id in another text is another weight."""
    one = made([[1, 0], [0, 1]], [{4: 0.5, 9: 0.2}, {}], [[1, 0], [0, 1]])
    other = made([[0.6, 0.8], [0, 1]], [{4: 0.3, 9: 0.2}, {4: 0.1}], [[1, 0], [1, 0]])
    found = kept(one, other)
    assert found == pytest.approx({"dense": 0.8, "sparse": 1 - 0.3 / 1.3, "colbert": 0.5})
    assert poor_sides(found) == ["dense", "sparse", "colbert"]
    assert kept(one, one) == pytest.approx({"dense": 1, "sparse": 1, "colbert": 1})
    assert poor_sides(kept(one, one)) == []


def test_sides_that_are_not_there() -> None:
    one = made([[1, 0]], [{}], [])
    assert kept(one.keep(["sparse"]), one) == {"sparse": 1}
    assert poor_sides({"dense": float("nan")}) == ["dense"]
