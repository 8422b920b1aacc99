"""How much of what a float32 encoder gives is left in int8, side by side, in figures that compare models.

Absolute differences depend on a model's scale; these do not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tercet.models.representations import Float32, Output, Representations, SparseRows

# What int8 keeps of sound checkpoints is above these; below, searches find other documents.
LEAST_KEPT: Mapping[Output, float] = {"dense": 0.98, "sparse": 0.9, "colbert": 0.97}
FIGURES: Mapping[Output, str] = {
    "dense": "mean cosine of dense vectors",
    "sparse": "share of the lexical weights that agrees",
    "colbert": "mean cosine of token vectors",
}


def kept(reference: Representations, other: Representations) -> dict[Output, float]:
    """Of the same texts, for each side, 1 where both are equal.

    dense, colbert: the mean of ⟨a, b⟩ over unit vectors; sparse: 1 - Σ|w - w'| / Σ(w + w') over all weights.
    """
    shares: dict[Output, float] = {}
    if reference.dense is not None and other.dense is not None:
        shares["dense"] = _mean_cosine(reference.dense, other.dense)
    if reference.sparse is not None and other.sparse is not None:
        shares["sparse"] = _agreement(reference.sparse, other.sparse)
    if reference.colbert is not None and other.colbert is not None:
        shares["colbert"] = _mean_cosine(reference.colbert.vectors, other.colbert.vectors)
    return shares


def poor_sides(shares: Mapping[Output, float]) -> list[Output]:
    """The sides of which int8 keeps less than of sound checkpoints."""
    return [side for side, value in shares.items() if not value >= LEAST_KEPT[side]]  # a NaN is poor


def _mean_cosine(reference: Float32, other: Float32) -> float:
    return float(np.einsum("ij,ij->i", reference, other).mean()) if len(reference) else 1.0


def _agreement(reference: SparseRows, other: SparseRows) -> float:
    total = float(reference.weights.sum()) + float(other.weights.sum())
    if not total:
        return 1.0
    keys = np.concatenate([_keys(reference), _keys(other)])
    signed = np.concatenate([reference.weights, -other.weights])
    _, group = np.unique(keys, return_inverse=True)
    return 1.0 - float(np.abs(np.bincount(group, signed)).sum()) / total


def _keys(rows: SparseRows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A number for each row and token id."""
    row = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    return (row << 32) + rows.token_ids
