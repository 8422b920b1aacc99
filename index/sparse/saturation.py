"""Weights that grow ever less with a term's frequency, and shrink with a document's length: those of BM25.

    weight = tf / (tf + base + slope · length)

Forward rows then hold frequencies tf, and weights are made of them when they are scored: `slope` changes with
the mean length of all documents, which a segment does not know. Its inverted index is made of the weights
that its own mean gives; a search knows the least and the most that a weight is of those.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.representations import Float32, Float64, Int32


@dataclass(frozen=True, slots=True)
class Saturation:
    """How the forward rows of N documents become weights. lengths: int32[N]; base: above 0."""

    lengths: Int32
    base: float
    slope: float

    def weights(self, frequencies: Float32, row: int) -> Float64:
        """The weights float64[T] of a row's frequencies float32[T]."""
        counted = frequencies.astype(np.float64)
        weights: Float64 = counted / (counted + (self.base + self.slope * self.lengths[row]))
        return weights
