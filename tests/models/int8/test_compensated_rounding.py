"""Whole numbers whose errors make up for each other."""

from __future__ import annotations

import numpy as np
import pytest

from tercet.models.int8.compensated_rounding import COLUMNS_AT_ONCE, compensated_rows
from tercet.models.int8.quantize import quantize_rows

LEVELS = 63
Arrays = tuple[np.ndarray, np.ndarray]


@pytest.fixture
def arrays() -> Arrays:
    """Weights, and inputs that lie near a few directions, as those inside a body do."""
    random = np.random.default_rng(4)
    weights = random.normal(size=(20, 2 * COLUMNS_AT_ONCE + 5)).astype(np.float32)
    directions = random.normal(size=(12, weights.shape[1]))
    inputs = random.normal(size=(400, 12)) @ directions + 0.05 * random.normal(size=(400, weights.shape[1]))
    return weights, inputs.astype(np.float32)


def compensated(weights: np.ndarray, inputs: np.ndarray) -> Arrays:
    _, scales = quantize_rows(weights, LEVELS)
    return compensated_rows(weights, (inputs.T @ inputs).astype(np.float64), scales, LEVELS), scales


def test_products_lose_less_than_by_the_nearest_numbers(arrays: Arrays) -> None:
    weights, inputs = arrays
    nearest, scales = quantize_rows(weights, LEVELS)
    numbers, _ = compensated(weights, inputs)
    expected = inputs @ weights.T
    plain, better = (np.linalg.norm(inputs @ (whole * scales).T - expected) for whole in (nearest, numbers))
    assert better < 0.5 * plain
    assert np.abs(numbers).max(axis=1).tolist() == [LEVELS] * len(weights)


def test_numbers_that_are_rounded_again_stay(arrays: Arrays) -> None:
    """As those of an int8 graph that is exported once more, by the nearest numbers or like this."""
    numbers, scales = compensated(*arrays)
    weights = numbers * scales
    again, same_scales = quantize_rows(weights, LEVELS)
    np.testing.assert_array_equal(again, numbers)
    np.testing.assert_allclose(same_scales, scales, rtol=1e-6)
    np.testing.assert_array_equal(compensated(weights, arrays[1])[0], numbers)


def test_without_inputs_it_takes_the_nearest(arrays: Arrays) -> None:
    weights, inputs = arrays
    np.testing.assert_array_equal(compensated(weights, 0 * inputs)[0], quantize_rows(weights, LEVELS)[0])


def test_inputs_that_were_never_there_do_no_harm(arrays: Arrays) -> None:
    weights, inputs = arrays
    inputs[:, :40] = 0
    weights[3] = 0
    numbers, scales = compensated(weights, inputs)
    nearest, _ = quantize_rows(weights, LEVELS)
    np.testing.assert_array_equal(numbers[:, :40], nearest[:, :40])
    assert np.isfinite(numbers * scales).all()
