"""Learning routers, on vectors in two and three dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from tercet.models.adapters.routers import CentroidSettings, GateSettings, RouterBase, SoftSettings
from tercet.training.errors import TrainingDataError
from tercet.training.routers import centroids, fit_gate, learn_router

BASE = RouterBase("tiny", "f" * 64)


def around(angle: float, count: int, spread: float, seed: int) -> np.ndarray:
    """Unit vectors in the plane, around an angle."""
    angles = angle + np.random.default_rng(seed).normal(0, spread, count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_a_centroid_is_the_normalized_mean() -> None:
    groups = [
        np.array([[1, 0], [0, 1]], np.float32),
        np.array([[-1, 0], [-0.6, 0.8], [-0.6, -0.8]], np.float32),
    ]
    assert centroids(groups) == pytest.approx(np.array([[0.5**0.5, 0.5**0.5], [-1, 0]]))


def test_a_gate_separates_what_is_separable() -> None:
    groups = [around(angle, 30, 0.1, seed) for seed, angle in enumerate((0.0, 0.8, 2.5))]
    weight, bias = fit_gate(groups)
    for k, group in enumerate(groups):
        assert ((group @ weight.T + bias).argmax(1) == k).all()
    again = fit_gate(groups)
    assert np.array_equal(again[0], weight)
    assert np.array_equal(again[1], bias)


def test_a_gate_is_at_the_minimum_of_its_loss() -> None:
    groups = [around(0.0, 20, 0.5, 0), around(1.0, 50, 0.5, 1)]
    weight, bias = fit_gate(groups, steps=4000, penalty=1e-2)

    def loss(w: np.ndarray) -> float:
        total = 0.0
        for k, group in enumerate(groups):
            scores = np.c_[group, np.ones(len(group))].astype(np.float64) @ w.T
            logs = scores[:, k] - np.log(np.exp(scores).sum(1))
            total -= logs.mean() / len(groups)
        return total + 1e-2 / 2 * float((w**2).sum())

    found = np.c_[weight, bias].astype(np.float64)
    for row in range(2):
        for column in range(3):
            step = np.zeros_like(found)
            step[row, column] = 1e-3
            assert abs(loss(found + step) - loss(found - step)) / 2e-3 < 1e-5


def test_groups_count_alike_whatever_their_size() -> None:
    x = np.array([[1, 0], [0.8, 0.6]], np.float32)
    few, many = fit_gate([x[:1], x[1:]]), fit_gate([x[:1], np.repeat(x[1:], 50, axis=0)])
    assert few[0] == pytest.approx(many[0], abs=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        CentroidSettings(("law", None)),
        GateSettings(("law", None)),
        SoftSettings(("law", None), "centroid", 0.05),
        SoftSettings(("law", None), "gate"),
    ],
)
def test_every_fifth_text_is_held_out(settings: CentroidSettings) -> None:
    groups = [around(0.0, 20, 0.2, 0), around(2.0, 11, 0.2, 1)]
    groups[1][4] = [1, 0]  # held out, and of the other group
    router, report = learn_router(settings, BASE, groups)
    assert (report.learned, report.held_out) == (16 + 9, 4 + 2)
    assert report.accuracies == [1.0, 0.5]
    assert report.accuracy == 0.75
    assert router.settings == settings
    assert router.base == BASE


def test_too_few_texts() -> None:
    with pytest.raises(TrainingDataError, match="the base has 4 texts; a router needs at least 5"):
        learn_router(GateSettings(("law", None)), BASE, [around(0.0, 5, 0.1, 0), around(1.0, 4, 0.1, 1)])
