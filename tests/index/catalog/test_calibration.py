"""How likely a hit answers: features and probabilities by hand."""

import math

import numpy as np
import pytest

from tercet.index.catalog.calibration import FEATURES, Calibration, features_of

# The best two first, then the second, a hit that lies further back, and the best again.
SCORES = np.array([[0.5, 0.25, 0.75], [0.5, 0.0, 0.5], [0.5, 0.0, 0.5], [0.0, 0.0, 0.25], [0.5, 0.25, 0.75]])


def test_the_best_is_compared_with_the_second_and_others_with_the_best() -> None:
    features = features_of(SCORES, 8)
    assert features.shape == (5, len(FEATURES))
    assert features[:, 5].tolist() == [0.5, -0.5, -0.5, -1.25, 0.5]
    assert features[1].tolist() == [1.0, 0.5, 0.0, 0.5, pytest.approx(math.log(8)), -0.5]


def test_a_hit_alone_has_no_gap() -> None:
    assert features_of(SCORES[:1], 1)[0].tolist() == [1.0, 0.5, 0.25, 0.75, 0.0, 0.0]


def test_a_confidence_by_hand() -> None:
    calibration = Calibration((-1.0, 2.0, 0.0, 0.0, 0.0, 4.0), 0.5, 10)
    # -1 + 2 * 0.5 + 4 * 0.5 and -1 + 2 * 0.5 - 4 * 0.5
    assert calibration.confidences(features_of(SCORES, 8))[:2].tolist() == pytest.approx(
        [1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))]
    )
