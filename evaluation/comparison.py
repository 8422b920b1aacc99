"""Whether two rankings differ by more than chance: Fisher's randomization test of paired differences.

M. Smucker, J. Allan, B. Carterette: "A comparison of statistical significance tests for information retrieval
evaluation", CIKM 2007.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tercet.models.representations import Float64

TRIALS = 100_000
CHUNK_SIGNS = 2**22  # random signs that are held at a time
CLOSE = 1e-12  # sums of the same differences in another order are equal so far


def randomization_test(differences: Float64, seed: int = 0, trials: int = TRIALS) -> Float64:
    """Two-sided p-values float64[M] of the mean differences of M measures.

    differences: float64[Q, M], that of each of Q queries. Were both rankings alike, each query's difference
    would be as likely of the other sign. The p-value is the share of the assignments of signs whose mean is
    at least as far from 0 as the one that was seen (Smucker, Allan and Carterette, CIKM 2007).

    Of few queries all 2^Q assignments are counted, of others as many random ones as `trials`, with one seed
    for all measures. To random ones the one that was seen is added, so that no p-value is 0 (Phipson and
    Smyth, 2010).
    """
    seen = np.abs(differences.sum(axis=0)) - CLOSE * np.abs(differences).sum(axis=0)
    exact = is_exact(len(differences), trials)
    extreme, total = np.zeros(differences.shape[1], np.int64), 0
    for signs in _all_signs(len(differences)) if exact else _random_signs(len(differences), seed, trials):
        extreme += (np.abs(signs @ differences) >= seen).sum(axis=0)
        total += len(signs)
    spare = 0 if exact else 1
    p_values: Float64 = (extreme + spare) / (total + spare)
    return p_values


def is_exact(queries: int, trials: int = TRIALS) -> bool:
    """Whether all assignments of signs to so many queries are counted."""
    return queries <= math.log2(trials)


def _all_signs(queries: int) -> Iterator[Float64]:
    bits = np.arange(2**queries)[:, None] >> np.arange(queries) & 1
    yield 1 - 2 * bits.astype(np.float64)


def _random_signs(queries: int, seed: int, trials: int) -> Iterator[Float64]:
    random, step = np.random.default_rng(seed), max(1, CHUNK_SIGNS // queries)
    for start in range(0, trials, step):
        bits = random.integers(0, 2, (min(step, trials - start), queries), np.int8)
        yield 1 - 2 * bits.astype(np.float64)
