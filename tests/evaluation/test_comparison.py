"""The randomization test: by hand, against every assignment of signs, and by random ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tercet.evaluation.comparison import is_exact, randomization_test


def test_three_queries_by_hand() -> None:
    # Of 8 assignments of signs, only +++ and --- are as far from 0 as the sum of 0.6.
    assert randomization_test(np.array([[0.1], [0.2], [0.3]])) == pytest.approx(2 / 8)
    # 0.1 + 0.2 - 0.3 is 0, from which no assignment is nearer.
    assert randomization_test(np.array([[0.1], [0.2], [-0.3]])) == pytest.approx(1.0)


def test_rankings_that_are_alike_do_not_differ() -> None:
    assert randomization_test(np.zeros((5, 2))).tolist() == [1.0, 1.0]
    assert randomization_test(np.zeros((50, 1))).tolist() == [1.0]


def test_random_signs_agree_with_all_of_eight_queries() -> None:
    differences = np.random.default_rng(3).normal(0.15, 0.4, (8, 3))
    seen = np.abs(differences.sum(axis=0))
    sums = np.array([np.array(signs) @ differences for signs in product((-1, 1), repeat=8)])
    every = (np.abs(sums) >= seen - 1e-9).mean(axis=0)
    assert randomization_test(differences) == pytest.approx(every, abs=1e-12)
    # With fewer trials than the 256 assignments they are drawn; a hundred seeds of them come near on average.
    assert not is_exact(8, trials=255)
    drawn = np.mean([randomization_test(differences, seed, trials=255) for seed in range(100)], axis=0)
    assert drawn == pytest.approx(every, abs=0.02)


def test_a_seed_fixes_the_p_value() -> None:
    differences = np.random.default_rng(1).normal(0.03, 0.2, (40, 1))
    first, again, other = (randomization_test(differences, seed, 5000) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    assert first == pytest.approx(other, abs=0.03)


def test_many_queries_are_drawn_in_parts() -> None:
    # Ten thousand queries times a hundred thousand trials do not fit into memory at a time.
    p_value = randomization_test(np.full((10_000, 1), 0.01), trials=1000)
    assert p_value == pytest.approx(1 / 1001)
