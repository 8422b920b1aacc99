"""Weights as whole numbers whose errors make up for each other, for the inputs that a matrix sees.

Frantar et al. 2022, arXiv 2210.17323 (GPTQ): columns are rounded one after another, and what one of them
loses is taken up by those still to come, as the inputs' second moments say.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Float32

DAMPING = 0.01  # of the mean second moment: inputs that were not seen count a little
COLUMNS_AT_ONCE = 64


def compensated_rows(
    weights: Float32, moments: npt.NDArray[np.float64], scales: Float32, levels: int
) -> npt.NDArray[np.int8]:
    """Rows as whole numbers in ±levels, numbers · scales ≈ weights; int8[O, I].

    weights: float32[O, I]; moments: float64[I, I], the sum of x·xᵀ over inputs x; scales: float32[O, 1], by
    which the largest number of each row is `levels`. It stays so: rounded to the nearest later, by the scales
    that they have then, the rows are the same.
    """
    left = weights.astype(np.float64)
    largest = np.abs(left).argmax(axis=1)
    upper = _inverse_root(moments)
    numbers = np.zeros(weights.shape, np.int8)
    for start in range(0, weights.shape[1], COLUMNS_AT_ONCE):
        end = min(start + COLUMNS_AT_ONCE, weights.shape[1])
        errors = np.zeros((len(weights), end - start))
        for column in range(start, end):
            values = left[:, column] / scales[:, 0]
            whole = np.clip(np.rint(values), -levels, levels)
            kept = largest == column
            whole[kept] = np.sign(weights[kept, column]) * levels
            numbers[:, column] = whole
            error = (left[:, column] - whole * scales[:, 0]) / upper[column, column]
            left[:, column + 1 : end] -= np.outer(error, upper[column, column + 1 : end])
            errors[:, column - start] = error
        left[:, end:] -= errors @ upper[start:end, end:]
    return numbers


def _inverse_root(moments: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The upper triangle U with UᵀU = (moments + damping)⁻¹."""
    damping = max(DAMPING * float(np.diagonal(moments).mean()), float(np.finfo(np.float32).tiny))
    root: npt.NDArray[np.float64] = np.linalg.cholesky(
        np.linalg.inv(moments + damping * np.eye(len(moments)))
    ).T
    return root
