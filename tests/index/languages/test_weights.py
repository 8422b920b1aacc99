"""The lexical side weighs less the more languages a collection has, and as much as the others in one."""

import pytest

from tercet.index.candidates import Weights
from tercet.index.languages.weights import usual_weights


@pytest.mark.parametrize(
    ("same_language", "sparse"), [(1.0, 1.0), (0.8, 1.0), (0.79, 0.624), (0.5, 0.25), (0.1, 0.1), (0.0, 0.1)]
)
def test_weights_by_hand(same_language: float, sparse: float) -> None:
    assert usual_weights(same_language) == Weights(1, sparse, 1)
    assert usual_weights(same_language, bm25=0.5) == Weights(1, sparse, 1, 0.5 * sparse)
