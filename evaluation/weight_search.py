"""Finds the weights, and the number of candidates, of highest mean nDCG@10 by cross-validation.

Pure NumPy over a table float64[Q, C, G]: nDCG@10 of Q queries, C numbers of candidates, G weights. Only the
direction of the weights decides a ranking, so a fixed set of directions is tried; it is the same for every
fold, so one table serves all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Weights
from tercet.models.representations import OUTPUTS, Float64, Int64, Output

# Neighbouring ratios of two weights differ by a third of an octave; they go up to 16, and then a side is off.
STEPS_PER_OCTAVE = 3
OCTAVES = 4
PLAIN_SUM = Weights()
SCALE = 3.0  # what weights add up to, as 1, 1, 1 do
WEIGHT_DECIMALS = 3
TOLERANCE = 0.001  # of mean nDCG@10: what is as good as the best


@dataclass(frozen=True, slots=True)
class Choice:
    """Places of the chosen number of candidates and of the chosen weights in their lists."""

    candidates: int
    weights: int


@dataclass(frozen=True, slots=True)
class Fold:
    """A choice made without the queries float64[F], whose nDCG@10 it gives, and that of the baseline."""

    choice: Choice
    queries: Int64
    baseline: Float64
    tuned: Float64


def weight_directions(sides: Collection[Output], usual: Weights = PLAIN_SUM) -> Float64:
    """Weights float64[G, 3] (dense, sparse, colbert) to try, from the usual ones, the first, outwards.

    Each adds up to 3, rounded to 3 decimals; those of sides that there are not are 0. Ratios of two weights
    are powers of 2^(1/3) up to 16; single sides and pairs are among them.
    """
    levels = [0.0, *(2 ** (step / STEPS_PER_OCTAVE) for step in range(STEPS_PER_OCTAVE * OCTAVES + 1))]
    # The least side that is not off has weight 1, or else the same direction would occur again and again.
    some = np.array([w for w in itertools.product(levels, repeat=len(sides)) if 1.0 in w])
    there = [side in sides for side in OUTPUTS]
    weights = np.zeros((len(some), len(OUTPUTS)))
    weights[:, there] = np.round(SCALE * some / some.sum(axis=1, keepdims=True), WEIGHT_DECIMALS)
    nearest = np.where(there, [usual.dense, usual.sparse, usual.colbert], 0.0)
    nearest = np.round(SCALE * nearest / nearest.sum(), WEIGHT_DECIMALS)
    weights = np.unique(np.vstack([nearest, weights]), axis=0)
    departure = np.round(np.linalg.norm(weights - nearest, axis=1), WEIGHT_DECIMALS)
    return weights[np.lexsort((*weights.T, departure))]


def choose(table: Float64) -> Choice:
    """What is best for all queries of a table float64[Q, C, G].

    Candidates ascend and weights depart from the usual ones along their axes. Of the numbers of candidates
    within TOLERANCE of the best the smallest is chosen, and then of the weights within it those nearest to
    the usual.
    """
    means = table.mean(axis=0)  # (C, G)
    candidates = int(np.argmax(means.max(axis=1) >= means.max() - TOLERANCE))
    weights = int(np.argmax(means[candidates] >= means[candidates].max() - TOLERANCE))
    return Choice(candidates, weights)


def cross_validate(table: Float64, baseline: Choice, folds: int, seed: int) -> list[Fold]:
    """For each fold of the queries, what is best for the others, measured on the fold.

    Queries are dealt to folds in a random order that the seed fixes. Needs more queries than folds.
    """
    queries = np.random.default_rng(seed).permutation(len(table))
    result = []
    for number in range(folds):
        held_out = np.sort(queries[number::folds])
        choice = choose(np.delete(table, held_out, axis=0))
        result.append(
            Fold(
                choice,
                held_out,
                table[held_out, baseline.candidates, baseline.weights],
                table[held_out, choice.candidates, choice.weights],
            )
        )
    return result
