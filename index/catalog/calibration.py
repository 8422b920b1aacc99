"""How likely a hit answers its query: a logistic function of its scores, fitted on judged queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.catalog.records import Record
from tercet.models.representations import Float64

PLAIN_SUM = Weights()
FEATURES = ("bias", "dense", "sparse", "colbert", "length", "gap")
"""What a confidence is computed from: 1, the three scores without weights, the logarithm of the number of the
query's token vectors, and by how much the sum is above the best of all others.
"""
LARGEST_COEFFICIENT = 1e6


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of FEATURES, and the confidence that a best hit has where the query is taken as answered.

    queries: how many judged ones it was fitted on.
    """

    coefficients: tuple[float, ...]
    threshold: float
    queries: int

    def confidences(self, features: Float64) -> Float64:
        """The probability that each hit answers, float64[N], by its features float64[N, F].

        The logistic function of their weighted sum, as Platt (1999) makes probabilities of scores.
        """
        return logistic(features @ np.array(self.coefficients))

    def to_json(self) -> dict[str, Any]:
        """The record of it."""
        return {
            "coefficients": dict(zip(FEATURES, self.coefficients, strict=True)),
            "threshold": self.threshold,
            "queries": self.queries,
        }

    @staticmethod
    def of(record: Record) -> Calibration:
        """The calibration of a record. Raises DamagedIndexError."""
        record.require_keys(Calibration.__slots__)
        coefficients = record.part("coefficients")
        coefficients.require_keys(FEATURES)
        return Calibration(
            tuple(coefficients.number(name, LARGEST_COEFFICIENT, -LARGEST_COEFFICIENT) for name in FEATURES),
            record.number("threshold", 1),
            record.count("queries", 1),
        )


def logistic(values: Float64) -> Float64:
    """`1 / (1 + e^-x)` of each value, without overflow."""
    result: Float64 = 0.5 * (1 + np.tanh(0.5 * values))
    return result


def features_of(scores: Float64, length: int, weights: Weights = PLAIN_SUM) -> Float64:
    """FEATURES of N hits of one query, float64[N, F].

    scores: float64[N, 3], dense, sparse, colbert, with the best two by the sum first; length: of the query,
    in token vectors; weights: of the sum. The best is compared with the second, where there is one, and all
    others with it.
    """
    sums = scores @ weights.array(3)
    best = sums[:1]
    second = sums[1:2] if len(sums) > 1 else best
    features = np.empty((len(scores), len(FEATURES)))
    features[:, 0] = 1.0
    features[:, 1:4] = scores
    features[:, 4] = np.log(max(1, length))
    features[:, 5] = sums - np.where(sums < best, best, second)
    return features
