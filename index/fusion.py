"""The weighted sum of the scores, its named weights, reciprocal rank fusion, and the order of results.

Sums are ordered on a scale of their own: scores in whole steps of their last decimal, under weights relative
to the largest. Weights a thousand times as large so give the same order, down to the last bit, and nothing
is rounded that would tell two sums apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

import numpy as np

from tercet.index.candidates import Weights
from tercet.index.errors import InvalidQueryError
from tercet.index.files.packed_bytes import PackedBytes, first_of, order_of
from tercet.index.scoring import DECIMALS
from tercet.models.representations import Float32, Float64, Int64

WEIGHT_PRESETS: Mapping[str, Weights] = MappingProxyType(
    {
        "sum": Weights(1.0, 1.0, 1.0),
        "miracl": Weights(1.0, 0.3, 1.0),
        "mldr": Weights(0.15, 0.5, 0.35),
        "flag": Weights(0.4, 0.2, 0.4),
    }
)

Fusion = Literal["sum", "rrf"]
"""How the scores of several sides become one: by their weighted sum, or by reciprocal ranks."""

RANK_CONSTANT = 60  # of Cormack et al.
RANK_DECIMALS = 12  # of a sum of reciprocal ranks; the last bits of float64 depend on the order of its parts
SIDES = 4  # dense, sparse, colbert, bm25; behind them is what boosts add
STEPS = 10.0**DECIMALS  # of scores, to 1
RATIO_DECIMALS = 13  # of a weight to the largest; the last bits of float64 depend on how large both are


def weights_preset(name: str) -> Weights:
    """The weights of a name. Raises InvalidQueryError where there are none of that name."""
    if name not in WEIGHT_PRESETS:
        raise InvalidQueryError(
            f"weights {name[:40]!r} is no preset; use {', '.join(WEIGHT_PRESETS)} or numbers"
        )
    return WEIGHT_PRESETS[name]


def relative_sum(components: Float64, weights: Weights) -> Float64:
    """What orders documents, float64[K]: the weighted sum, in steps of scores and relative to the largest
    weight.

    components: float64[K, S], rounded scores of the first S sides: dense, sparse, colbert, bm25; and what
    boosts add.
    """
    ratios, _ = _relative(weights, components.shape[1])
    sums: Float64 = _added(components, ratios)[0]
    return sums


def relative_sums(components: Float64, weights: Float64) -> Float64:
    """Relative sums by each of the weights float64[G, S], maybe of fewer sides: float64[G, K]."""
    return _added(components, weight_ratios(weights))


def weighted_sum(components: Float64, weights: Weights) -> Float64:
    """`w_d s_dense + w_l s_lex + w_m s_mul`, and `w_b s_bm25` where there is a fourth: float64[K].

    components: as those of `relative_sum`, which orders alike.
    """
    sides = components.shape[1]
    return as_weighted(relative_sum(components, weights), weights, sides)


def reciprocal_rank_fusion(components: Float64, weights: Weights) -> Float64:
    """`sum over sides of w / (60 + rank)`, and what boosts add (Cormack, Clarke, Büttcher 2009): float64[K].

    components: as those of `relative_sum`. A document's rank on a side is one more than the number of those
    with a higher score, and equal ones share the mean of theirs: so a side that finds all alike prefers none.
    A side on which its score is 0 says nothing of it.
    """
    scores = components[:, :SIDES]
    ratios, largest = _relative(weights, scores.shape[1])
    fused: Float64 = np.zeros(len(scores))
    for ratio, steps in zip(ratios[0].tolist(), np.rint(scores * STEPS).T, strict=True):
        if ratio:
            ascending = np.sort(steps)
            ends = [np.searchsorted(ascending, steps, end) for end in ("left", "right")]
            ranks = len(steps) + 0.5 - np.mean(ends, axis=0)
            fused += np.where(steps == 0, 0.0, ratio / (RANK_CONSTANT + ranks))
    fused = np.round(fused, RANK_DECIMALS) * largest
    added: Float64 = components[:, SIDES:].sum(axis=1)
    return fused + added


def as_weighted(relative: Float64, weights: Weights, sides: int) -> Float64:
    """The weighted sums that relative ones float64[K], of so many sides, stand for."""
    _, largest = _relative(weights, sides)
    return relative * largest / STEPS


def weight_ratios(weights: Float64) -> Float64:
    """Weights float64[..., S] relative to the largest of the S; all 0 where that is 0."""
    largest = _largest(weights)
    ratios: Float64 = np.round(weights / np.where(largest > 0, largest, 1.0), RATIO_DECIMALS)
    return ratios


@lru_cache(maxsize=64)  # most searches have the weights of those before
def _relative(weights: Weights, sides: int) -> tuple[Float64, float]:
    """Weights of the first sides relative to the largest, float64[1, sides], and the largest of all."""
    array = weights.array(sides)[None, :]
    return weight_ratios(array), float(_largest(array)[0, 0])


def _added(components: Float64, ratios: Float64) -> Float64:
    """The relative sums of K documents by the ratios of G weights, float64[G, K]."""
    steps = np.rint(components * STEPS)
    sums: Float64 = ratios[:, :1] * steps[:, 0]
    for side in range(1, ratios.shape[1]):  # one after the other, so that every search adds alike
        sums = sums + ratios[:, side : side + 1] * steps[:, side]
    return sums


def _largest(weights: Float64) -> Float64:
    largest: Float64 = np.abs(weights).max(axis=-1, keepdims=True)
    return largest


def kept_of(
    scores: Float64 | Float32,
    limit: int,
    ids_of: Callable[[Int64], PackedBytes],
    ordinals: Int64 | None = None,
) -> Int64:
    """Which of K documents are the `limit` best by scores [K], equal ones by id: int64[n], in no order.

    ids_of: gives the ids of some; ordinals: int64[K], by which those of one id are told apart, by default the
    order that they stand in.
    """
    if len(scores) <= limit:
        return np.arange(len(scores))
    lowest = np.partition(scores, len(scores) - limit)[len(scores) - limit]
    above, last = np.flatnonzero(scores > lowest), np.flatnonzero(scores == lowest)
    if len(above) + len(last) > limit:
        if ordinals is not None:
            last = last[np.argsort(ordinals[last], kind="stable")]
        last = last[first_of(ids_of(last), limit - len(above))]
    return np.concatenate([above, last])


def best(scores: Float64, limit: int, ids_of: Callable[[Int64], PackedBytes]) -> Int64:
    """Indices of the `limit` highest scores float64[K], best first, equal ones in order of id, then of index.

    `ids_of` gives the ids at some places; it is asked only for those of equal scores that can be in the
    answer.
    """
    if limit <= 0 or len(scores) == 0:
        return np.empty(0, np.int64)
    indices = np.sort(kept_of(scores, limit, ids_of))
    order: Int64 = indices[np.argsort(-scores[indices], kind="stable")]
    ranked = scores[order]
    equal = ranked[1:] == ranked[:-1]
    if equal.any():
        tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
        by_id = tied[order_of(ids_of(order[tied]))]
        order[tied] = order[by_id[np.argsort(-ranked[by_id], kind="stable")]]
    return order
