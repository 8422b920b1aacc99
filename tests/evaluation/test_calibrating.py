"""Fitting how sure searches are: what comes out of examples whose answer is known."""

import numpy as np
import pytest

from tercet.evaluation.calibrating import (
    Examples,
    ExampleSet,
    best_confidences,
    calibration_error,
    fitted,
    kept_threshold,
)
from tercet.index.catalog.calibration import Calibration, logistic

TRUE = np.array([-1.0, 1.5, 0.5, 1.0, 0.0, 2.0])


def drawn(count: int, seed: int) -> list[Examples]:
    """Queries of three hits, each of which answers as likely as TRUE says."""
    random = np.random.default_rng(seed)
    features = np.concatenate([np.ones((count * 3, 1)), random.normal(size=(count * 3, 5))], axis=1)
    answers = random.random(count * 3) < logistic(features @ TRUE)
    return [Examples(features[row : row + 3], answers[row : row + 3]) for row in range(0, count * 3, 3)]


def test_coefficients_are_found_again_and_a_prior_holds_where_examples_are_few() -> None:
    calibration = fitted([ExampleSet(drawn(4000, 0), drawn(4000, 1))])
    assert calibration.coefficients == pytest.approx(TRUE, abs=0.3)
    assert calibration.queries == 4000
    far = Calibration(tuple(-20 * TRUE), 0.5, 10)  # from which a whole step of Newton's method goes astray
    again = fitted([ExampleSet(drawn(4000, 0), drawn(4000, 1))], far)
    assert again.coefficients == pytest.approx(TRUE, abs=0.5)
    other = Calibration(tuple(-TRUE), 0.5, 10)
    few = ExampleSet(drawn(3, 2), drawn(3, 3))
    distances = [np.abs(np.array(fitted([few], known).coefficients) + TRUE).max() for known in (None, other)]
    assert distances[1] < distances[0]


def test_the_threshold_keeps_what_is_answered_in_the_median_set() -> None:
    sets = [ExampleSet(drawn(200, seed), drawn(10, seed + 10)) for seed in range(3)]
    calibration = fitted(sets)
    kept = [np.mean(best_confidences(calibration, each.answered) >= calibration.threshold) for each in sets]
    assert 0.95 <= sorted(kept)[1] < 0.965
    assert kept_threshold(np.arange(100) / 100) == 0.04


def test_hits_are_the_best_by_the_plain_sum_with_and_without_answers() -> None:
    scores = np.array([[0.1, 0.0, 0.1], [0.5, 0.25, 0.75], [0.5, 0.0, 0.5]])
    relevant = np.array([False, True, False])
    whole, without = (of(scores, relevant, 4) for of in (Examples.of, Examples.without_answers))
    assert whole.answers.tolist() == [True, False, False]
    assert whole.features[:, 5].tolist() == pytest.approx([0.5, -0.5, -1.3])
    assert not without.answers.any()
    assert without.features[:, 5].tolist() == pytest.approx([0.8, -0.8])
    nothing = Examples.of(scores[:0], relevant[:0], 4)
    sure = Calibration((9.0, 0, 0, 0, 0, 0), 0.5, 1)
    assert best_confidences(sure, [nothing, whole]).tolist() == pytest.approx([0, 1], abs=0.001)


def test_the_calibration_error_by_hand() -> None:
    confidences, answers = np.array([0.95, 0.9, 0.15, 1.0]), np.array([1.0, 0.0, 0.0, 1.0])
    # |(0.95 + 0.9 + 1) - 2| and 0.15, over 4
    assert calibration_error(confidences, answers, np.ones(4)) == pytest.approx((0.85 + 0.15) / 4)
    assert calibration_error(confidences, answers, np.array([1.0, 1, 2, 1])) == pytest.approx(1.15 / 5)
