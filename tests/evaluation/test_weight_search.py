"""Directions of the weights, the choice among them, and cross-validation, on tables worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tercet.evaluation.weight_search import TOLERANCE, Choice, choose, cross_validate, weight_directions
from tercet.index.candidates import Weights
from tercet.models.representations import OUTPUTS, Float64

PLAIN = Choice(0, 0)


def test_directions_begin_with_the_plain_sum_and_depart_from_it() -> None:
    weights = weight_directions(OUTPUTS)
    assert weights[0].tolist() == [1, 1, 1]
    departures = np.linalg.norm(weights - 1, axis=1)
    assert (np.diff(departures) > -0.001).all()
    assert weights.sum(axis=1) == pytest.approx(3, abs=0.0021)
    assert len(np.unique(weights, axis=0)) == len(weights) == 547
    rows = weights.tolist()
    for single in ([3, 0, 0], [0, 3, 0], [0, 0, 3], [1.5, 1.5, 0]):
        assert single in rows
    # Sixteen to one is the last ratio, in all orders: 16/33, 16/33 and 1/33 of 3.
    assert [1.455, 0.091, 1.455] in rows
    assert sorted(rows) == sorted([b, a, c] for a, b, c in rows)


def test_directions_depart_from_the_usual_weights() -> None:
    weights = weight_directions(OUTPUTS, Weights(1, 0.064, 1))
    assert weights[0].tolist() == [1.453, 0.093, 1.453]  # 3 / 2.064 and 0.192 / 2.064
    assert len(weights) == 548
    assert (np.diff(np.linalg.norm(weights - weights[0], axis=1)) > -0.001).all()
    assert weight_directions(("dense", "sparse"), Weights(1, 0.5, 1))[0].tolist() == [2, 1, 0]


def test_sides_that_there_are_not_weigh_nothing() -> None:
    weights = weight_directions(("dense", "sparse"))
    assert weights[0].tolist() == [1.5, 1.5, 0]
    assert not weights[:, 2].any()
    assert weights.sum(axis=1) == pytest.approx(3, abs=0.0021)
    # Either side off, both alike, and twelve ratios each way.
    assert len(np.unique(weights, axis=0)) == len(weights) == 2 + 1 + 2 * 12
    assert weight_directions(("colbert",)).tolist() == [[0, 0, 3]]


def test_equal_weights_are_chosen_nearest_to_the_plain_sum() -> None:
    table = np.array([[[0.5, 0.7, 0.9, 0.9]], [[0.5, 0.9, 0.7, 0.7]]])  # means 0.5, 0.8, 0.8, 0.8
    assert choose(table) == Choice(0, 1)
    assert choose(np.full((3, 2, 4), 0.5)) == PLAIN


def test_a_gain_within_the_tolerance_is_none() -> None:
    less, more = 0.9 * TOLERANCE, 1.1 * TOLERANCE
    assert choose(np.array([[[0.5, 0.5 + less]]])) == PLAIN
    assert choose(np.array([[[0.5, 0.5 + more]]])) == Choice(0, 1)


def test_the_fewest_candidates_as_good_as_the_best_are_chosen() -> None:
    less, more = 0.9 * TOLERANCE, 1.1 * TOLERANCE
    table = np.array([[[0.3, 0.5 - more], [0.3, 0.5 - less], [0.3, 0.5]]])
    assert choose(table) == Choice(1, 1)


def table_of(*queries: list[float]) -> Float64:
    return np.array(queries)[:, None, :]


def test_a_choice_is_measured_on_queries_it_has_not_seen() -> None:
    # One query alone prefers the second weights; held out, it cannot vote for them.
    table = table_of([0.4, 0.9], *([[0.5, 0.45]] * 5))
    folds = cross_validate(table, PLAIN, 3, seed=0)
    assert sorted(query for fold in folds for query in fold.queries.tolist()) == list(range(6))
    assert [len(fold.queries) for fold in folds] == [2, 2, 2]
    for fold in folds:
        # Without the first query the plain sum is best; with it, 0.9 + 3 × 0.45 beats 0.4 + 3 × 0.5.
        holds_first = 0 in fold.queries
        assert fold.choice == (PLAIN if holds_first else Choice(0, 1))
        assert fold.baseline.tolist() == table[fold.queries, 0, 0].tolist()
        assert fold.tuned.tolist() == table[fold.queries, 0, 0 if holds_first else 1].tolist()
    gain = sum(float((fold.tuned - fold.baseline).sum()) for fold in folds)
    assert gain == pytest.approx(4 * -0.05)


def test_the_seed_fixes_the_folds() -> None:
    table = np.random.default_rng(1).uniform(size=(20, 2, 5))

    def queries(seed: int) -> list[list[int]]:
        return [fold.queries.tolist() for fold in cross_validate(table, PLAIN, 6, seed)]

    assert queries(4) == queries(4)
    assert queries(4) != queries(5)
    assert sorted(map(len, queries(4))) == [3, 3, 3, 3, 4, 4]
