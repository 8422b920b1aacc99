"""The weighted sum of the scores, its named weights, and the order of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from index.candidates import Weights
from index.errors import InvalidQueryError
from index.scoring import DECIMALS
from models.representations import Float64, Int64

WEIGHT_PRESETS: Mapping[str, Weights] = MappingProxyType(
    {
        "sum": Weights(1.0, 1.0, 1.0),
        "miracl": Weights(1.0, 0.3, 1.0),
        "mldr": Weights(0.15, 0.5, 0.35),
        "flag": Weights(0.4, 0.2, 0.4),
    }
)


def weights_preset(name: str) -> Weights:
    """The weights of a name. Raises InvalidQueryError where there are none of that name."""
    if name not in WEIGHT_PRESETS:
        raise InvalidQueryError(
            f"weights {name[:40]!r} is no preset; use {', '.join(WEIGHT_PRESETS)} or numbers"
        )
    return WEIGHT_PRESETS[name]


def weighted_sum(components: Float64, weights: Weights) -> Float64:
    """`w_d s_dense + w_l s_lex + w_m s_mul`, and `w_b s_bm25` where there is a fourth: float64[K], rounded.

    components: float64[K, S] of the first S sides: dense, sparse, colbert, bm25.
    """
    sums: Float64 = weighted_sums(components, weights.array(components.shape[1])[None, :])[0]
    return sums


def weighted_sums(components: Float64, weights: Float64) -> Float64:
    """The same for each of the weights float64[G, S], which may be those of fewer sides: float64[G, K]."""
    sums: Float64 = weights[:, :1] * components[:, 0]
    for side in range(1, weights.shape[1]):  # one after the other, so that every search adds alike
        sums = sums + weights[:, side : side + 1] * components[:, side]
    return np.round(sums, DECIMALS)


def best(scores: Float64, limit: int, ids_of: Callable[[Int64], Sequence[bytes]]) -> Int64:
    """Places of the `limit` highest scores float64[K], best first, equal scores in order of id.

    `ids_of` gives the ids at some places; it is asked only where scores are equal, and only for places that
    can be in the answer.
    """
    if limit <= 0 or len(scores) == 0:
        return np.empty(0, np.int64)
    if limit < len(scores):
        lowest = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        places = np.flatnonzero(scores >= lowest)
    else:
        places = np.arange(len(scores))
    order: Int64 = places[np.argsort(-scores[places], kind="stable")]
    ranked = scores[order]
    if (ranked[1:] == ranked[:-1]).any():
        ids = ids_of(order)
        order = order[sorted(range(len(order)), key=lambda place: (-ranked[place], ids[place]))]
    return order[:limit]
