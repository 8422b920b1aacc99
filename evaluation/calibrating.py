"""Fits how sure searches are of their hits: logistic regression on judged queries, and how well it holds.

Of each query the best hits by the plain sum are examples, those judged relevant as answers, all others not.
Queries that nothing answers are as much as those that something does, together: nobody knows how often a
collection is asked what it does not say.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.catalog.calibration import Calibration, features_of, logistic
from tercet.models.representations import Bool, Float64

DEPTH = 10  # hits of a query that are examples
KEPT = 0.95  # of the queries that something answers, whose best hit reaches the threshold
BINS = 10  # of confidences
PRIOR_WEIGHT = 4.0  # of the coefficients that are known before, about what ten queries weigh
NO_PRIOR_WEIGHT = 0.1  # keeps coefficients finite where examples are separable
LEAST_SCALE = 1e-6
STEPS = 100
TOLERANCE = 1e-9
COEFFICIENT_DECIMALS = 6
THRESHOLD_STEPS = 10_000  # to 1; down, so that nothing that is kept falls below


@dataclass(frozen=True, slots=True)
class Examples:
    """N hits of one query, best first. features: float64[N, F]; answers: bool[N]."""

    features: Float64
    answers: Bool

    @staticmethod
    def of(scores: Float64, relevant: Bool, length: int) -> Examples:
        """Those of candidates with scores float64[K, 3]; length: of the query, in token vectors."""
        best = np.argsort(-scores.sum(axis=1), kind="stable")[:DEPTH]
        return Examples(features_of(scores[best], length), relevant[best])

    @staticmethod
    def without_answers(scores: Float64, relevant: Bool, length: int) -> Examples:
        """Those of the same query in a collection without its relevant documents."""
        others = ~relevant
        return Examples.of(scores[others], relevant[others], length)


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """Queries to one collection that something answers there, and others that nothing does."""

    answered: Sequence[Examples]
    unanswered: Sequence[Examples]

    @property
    def weights(self) -> Float64:
        """What each query counts: together as much on both sides."""
        share = len(self.answered) / max(1, len(self.unanswered))
        return np.concatenate([np.ones(len(self.answered)), np.full(len(self.unanswered), share)])

    @property
    def queries(self) -> tuple[Examples, ...]:
        """All, in the order of their weights."""
        return (*self.answered, *self.unanswered)


def fitted(sets: Sequence[ExampleSet], prior: Calibration | None = None) -> Calibration:
    """The calibration of highest likelihood, by Newton's method, with a Gaussian prior.

    prior: what is known before, by default that nothing but the share of answers is likely. The threshold
    keeps KEPT of the answered queries of the median set.
    """
    queries = [query for each in sets for query in each.queries]
    features = np.concatenate([query.features for query in queries])
    answers = np.concatenate([query.answers for query in queries]).astype(np.float64)
    weights = np.repeat(
        np.concatenate([each.weights for each in sets]), [len(query.answers) for query in queries]
    )
    mean, scale = features.mean(axis=0), features.std(axis=0)
    mean[0], scale[0] = 0.0, 1.0
    scale[scale < LEAST_SCALE] = 1.0  # what does not vary keeps to what was known
    inputs = (features - mean) / scale
    before, penalty = np.zeros(len(mean)), np.full(len(mean), NO_PRIOR_WEIGHT)
    if prior is not None:
        known = np.array(prior.coefficients)
        before, penalty = known * scale, np.full(len(mean), PRIOR_WEIGHT)
        before[0] = known @ np.append(1.0, mean[1:])
    found = _most_likely(inputs, answers, weights, before, penalty) / scale
    found[0] -= found[1:] @ mean[1:]
    coefficients = tuple(found.round(COEFFICIENT_DECIMALS).tolist())
    count = sum(len(each.answered) for each in sets)
    unbounded = Calibration(coefficients, 0.0, count)
    thresholds = [kept_threshold(best_confidences(unbounded, each.answered)) for each in sets]
    threshold = math.floor(np.median(thresholds) * THRESHOLD_STEPS) / THRESHOLD_STEPS
    return replace(unbounded, threshold=threshold)


def _most_likely(
    inputs: Float64, answers: Float64, weights: Float64, before: Float64, penalty: Float64
) -> Float64:
    """The minimum float64[F] of `sum of w (log(1 + e^z) - y z) + p (b - before)^2 / 2`, z = inputs b.

    inputs: float64[N, F]; a step of Newton's method that goes too far is halved.
    """

    def loss(coefficients: Float64) -> float:
        values = inputs @ coefficients
        prior = penalty @ (coefficients - before) ** 2 / 2
        return float(weights @ (np.logaddexp(0, values) - answers * values) + prior)

    found = before
    for _ in range(STEPS):
        likely = logistic(inputs @ found)
        gradient = inputs.T @ (weights * (likely - answers)) + penalty * (found - before)
        curvature = (inputs * (weights * likely * (1 - likely))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        while loss(found - step) > loss(found) and np.abs(step).max() > TOLERANCE:
            step = step / 2
        found = found - step
        if np.abs(step).max() <= TOLERANCE:
            break
    return found


def best_confidences(calibration: Calibration, queries: Sequence[Examples]) -> Float64:
    """Of the best hit of each query: float64[Q], 0 where there is none."""
    firsts = [query.features[:1] for query in queries]
    found = np.zeros(len(queries))
    found[[len(first) > 0 for first in firsts]] = calibration.confidences(np.concatenate(firsts))
    return found


def kept_threshold(confidences: Float64) -> float:
    """What KEPT of the confidences float64[Q] of queries' best hits reach."""
    return float(np.quantile(confidences, 1 - KEPT, method="lower"))


def calibration_error(confidences: Float64, answers: Float64, weights: Float64) -> float:
    """The expected calibration error: the mean distance of confidence and share of answers over BINS equal
    bins, each counted by its examples (Naeini, Cooper, Hauskrecht 2015). All float64[N].
    """
    bins = np.minimum((confidences * BINS).astype(np.int64), BINS - 1)
    distances = np.bincount(bins, weights * (confidences - answers), BINS)
    return float(np.abs(distances).sum() / weights.sum())
