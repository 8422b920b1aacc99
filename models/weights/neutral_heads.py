"""Heads whose vectors do not tell languages apart.

The mean vectors of languages differ in a few directions, and in these a query lies near documents of its own
language, whatever they say. LIR (Yang et al. 2021, arXiv 2109.04727) projects such directions out of all
vectors; that they show in means: Libovický et al. 2020, arXiv 2004.05160.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tercet.models.representations import Float32
from tercet.models.weights.dense_layers import DenseLayer, Layers
from tercet.models.weights.head_weights import HeadWeights, LinearHead


def language_directions(means: Float32, count: int) -> Float32:
    """The directions in which languages differ most, orthonormal float32[count, D], the largest first.

    means: float32[languages, D], the mean vector of each language. They are the principal directions of the
    means' differences from their own mean, so there are at most `languages - 1`.
    """
    differences = means.astype(np.float64) - means.mean(axis=0, dtype=np.float64)
    return np.linalg.svd(differences, full_matrices=False)[2][:count].astype(np.float32)


def projection_without(directions: Float32) -> Float32:
    """The matrix P = I - VᵀV, float32[D, D], that takes orthonormal directions V, float32[count, D], out."""
    exact = directions.astype(np.float64)
    return (np.eye(exact.shape[1]) - exact.T @ exact).astype(np.float32)


def neutral_heads(heads: HeadWeights, dense: Float32 | None, tokens: Float32 | None) -> HeadWeights:
    """Heads whose dense vectors and token vectors have no part in these directions; lexical weights stay.

    dense: float32[count, D] in the space of dense vectors; tokens: float32[count, C] in that of token
    vectors; None for a side that stays as it is, or is not there.
    """
    if dense is not None:
        heads = replace(heads, dense=_followed(heads.dense, projection_without(dense)))
    if tokens is None:
        return heads
    projection = projection_without(tokens)
    if heads.colbert is None:
        return replace(heads, tokens=_followed(heads.tokens, projection))
    colbert = LinearHead(projection @ heads.colbert.weight, projection @ heads.colbert.bias)
    return replace(heads, colbert=colbert)


def _followed(layers: Layers, projection: Float32) -> Layers:
    """Layers and a projection of what they give, which becomes part of the last one where that is linear."""
    if not layers or not layers[-1].is_linear:
        return (*layers, DenseLayer(projection))
    weight, bias = layers[-1].weight, layers[-1].bias
    return (*layers[:-1], DenseLayer(projection @ weight, None if bias is None else projection @ bias))
