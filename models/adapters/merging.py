"""Several adapters of one kind and base merged into one, by weights.

LoRA is merged exactly: Σ w_i·s_i·B_i·A_i is one product of the factors put side by side, of rank Σ r_i. (The
mean of the A's times the mean of the B's is another matrix.) With `rank` it is cut to its largest singular
values. (IA)³ is merged as its distance from the identity, 1, and changes of biases and of single weights as
they are. Parameters of
bottlenecks, prefixes and heads are averaged, which is a usual approximation, not an average of what they
compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tercet.models.adapters.compound_settings import HypernetworkSettings, UnipeltSettings
from tercet.models.adapters.record import Adapter
from tercet.models.adapters.settings import (
    INDICES,
    BiasSettings,
    Ia3Settings,
    LoraSettings,
    SparseSettings,
    StackSettings,
)
from tercet.models.errors import CheckpointError
from tercet.models.representations import Float32, Int32
from tercet.models.weights.head_weights import HeadWeights

Method = Literal["average", "weighted", "arithmetic"]
SUM_TOLERANCE = 1e-6


def merge_adapters(
    adapters: Sequence[Adapter],
    method: Method = "average",
    weights: Sequence[float] = (),
    *,
    rank: int | None = None,
) -> Adapter:
    """One adapter made of two or more.

    average: equal weights; weighted: `weights` of at least 0, divided by their sum; arithmetic: `weights` as
    they are, such as 1, 1, -1 for a + b - c. rank: that of the result (lora only); by default all ranks
    together, which is exact. Raises CheckpointError where the adapters cannot be merged so.
    """
    factors = merge_weights(len(adapters), method, weights)
    first = adapters[0]
    _require_alike(adapters)
    if rank is not None and not isinstance(first.settings, LoraSettings):
        raise CheckpointError(f"rank {rank} was asked for, but adapters of kind {first.kind} have none")
    whole = abs(sum(factors) - 1) <= SUM_TOLERANCE
    heads = _merge_heads(adapters, factors, whole=whole)
    if isinstance(first.settings, LoraSettings):
        settings, arrays = _merge_lora(adapters, factors, rank)
        return Adapter(settings, first.base, arrays, heads, first.below)
    if isinstance(first.settings, SparseSettings):
        merged = _merge_sparse(adapters, factors)
        chosen = replace(first.settings, count=len(merged[INDICES]))
        return Adapter(chosen, first.base, merged, heads, first.below)
    shift = 1.0 if isinstance(first.settings, Ia3Settings) else 0.0
    if not whole and not isinstance(first.settings, Ia3Settings | BiasSettings):
        raise CheckpointError(
            f"the weights sum to {sum(factors):g}; parameters of kind {first.kind} have no zero to add "
            "to, so weights must sum to 1, as in a + b - c"
        )
    merged = {
        name: (shift + _combined([adapter.arrays[name] - shift for adapter in adapters], factors)).astype(
            np.float32
        )
        for name in first.arrays
    }
    return Adapter(first.settings, first.base, merged, heads, first.below)


def merge_weights(count: int, method: Method, weights: Sequence[float]) -> list[float]:
    """The factor of each adapter. Raises CheckpointError where weights and method do not fit."""
    if count < 2:
        raise CheckpointError(f"{count} adapters are given; merging takes two or more")
    if method == "average":
        if weights:
            raise CheckpointError("average takes no weights; use weighted or arithmetic")
        return [1 / count] * count
    if len(weights) != count or not np.isfinite(weights).all():
        raise CheckpointError(f"{count} adapters need as many finite weights; {list(weights)} was given")
    if method == "arithmetic":
        return [float(weight) for weight in weights]
    total = sum(weights)
    if min(weights) < 0 or total <= 0:
        raise CheckpointError(f"weights are {list(weights)}; weighted takes weights from 0, not all 0")
    return [weight / total for weight in weights]


def cut_rank(down: Float32, up: Float32, rank: int) -> tuple[Float32, Float32]:
    """Factors of at most `rank` whose product is the nearest to up·down, by singular values.

    down: float32[R, in]; up: float32[out, R]. Returns float32[rank, in] and float32[out, rank].
    """
    left, left_core = np.linalg.qr(up.astype(np.float64))
    right, right_core = np.linalg.qr(down.T.astype(np.float64))
    u, values, v = np.linalg.svd(left_core @ right_core.T)
    kept = min(rank, len(values))
    roots = np.sqrt(values[:kept])
    new_up, new_down = np.zeros((len(up), rank)), np.zeros((rank, down.shape[1]))
    new_up[:, :kept] = left @ u[:, :kept] * roots
    new_down[:kept] = roots[:, None] * (v[:kept] @ right.T)
    return new_down.astype(np.float32), new_up.astype(np.float32)


def _merge_lora(
    adapters: Sequence[Adapter], factors: Sequence[float], rank: int | None
) -> tuple[LoraSettings, dict[str, Float32]]:
    parts = [adapter.settings for adapter in adapters if isinstance(adapter.settings, LoraSettings)]
    size = sum(part.rank for part in parts) if rank is None else rank
    # alpha equal to the rank: the scale is 1, all scales are in the factors.
    settings = LoraSettings(size, float(size), 0.0, parts[0].targets)
    arrays = {}
    for name in settings.shapes(adapters[0].base.body):
        slot, _, matrix = name.rpartition(".")
        if matrix != "lora_a":
            continue
        down = np.concatenate([adapter.arrays[name] for adapter in adapters])
        up = np.concatenate(
            [
                np.float32(factor * part.scale) * adapter.arrays[f"{slot}.lora_b"]
                for adapter, part, factor in zip(adapters, parts, factors, strict=True)
            ],
            axis=1,
        )
        arrays[name], arrays[f"{slot}.lora_b"] = (down, up) if rank is None else cut_rank(down, up, rank)
    return settings, arrays


def _merge_sparse(adapters: Sequence[Adapter], factors: Sequence[float]) -> dict[str, Float32 | Int32]:
    """The sum, with the places of all."""
    indices = np.unique(np.concatenate([adapter.arrays[INDICES] for adapter in adapters])).astype(np.int32)
    values = np.zeros(len(indices))
    for adapter, factor in zip(adapters, factors, strict=True):
        values[np.searchsorted(indices, adapter.arrays[INDICES])] += factor * adapter.arrays["values"]
    return {INDICES: indices, "values": values.astype(np.float32)}


def _merge_heads(adapters: Sequence[Adapter], factors: Sequence[float], *, whole: bool) -> HeadWeights | None:
    heads = [adapter.heads for adapter in adapters if adapter.heads is not None]
    if not heads:
        return None
    if len(heads) != len(adapters) or len({own.sizes for own in heads}) > 1:
        raise CheckpointError("either all adapters have heads of their own, of one size, or none has")
    if not whole:
        raise CheckpointError(
            f"the weights sum to {sum(factors):g}; heads have no zero to add to, so weights must sum to 1"
        )
    arrays = [own.arrays() for own in heads]
    merged = {name: _combined([tensors[name] for tensors in arrays], factors) for name in arrays[0]}
    return HeadWeights.from_arrays(merged, "merged heads", adapters[0].base.body.hidden_size)


def _combined(arrays: Sequence[Float32], factors: Sequence[float]) -> Float32:
    total = sum(factor * array.astype(np.float64) for factor, array in zip(factors, arrays, strict=True))
    return np.asarray(total, np.float32)


def _require_alike(adapters: Sequence[Adapter]) -> None:
    first = adapters[0]
    for other in adapters[1:]:
        if other.base.fingerprint != first.base.fingerprint:
            raise CheckpointError(
                f"adapters of two bases, {first.base.name!r} ({first.base.fingerprint}) and "
                f"{other.base.name!r} ({other.base.fingerprint}), cannot be merged"
            )
        # Ranks may differ, since factors are put side by side, and so may places.
        if first.below != other.below:
            raise CheckpointError("adapters that were trained on top of different ones cannot be merged")
        own, others = (_comparable(adapter) for adapter in (first, other))
        if first.kind != other.kind or own != others:
            raise CheckpointError(
                f"adapters of kind {first.kind} with {own} and of kind {other.kind} with {others} cannot be "
                "merged; they must have one kind and the same settings (lora may differ in rank and alpha)"
            )
    if isinstance(first.settings, UnipeltSettings | HypernetworkSettings):
        raise CheckpointError(
            f"adapters of kind {first.kind} are not merged, as they multiply parameters, and the mean of "
            "factors is not that of products; mix what they compute with a soft router"
        )
    if isinstance(first.settings, StackSettings):
        raise CheckpointError("a stack has no parameters to merge; merge the adapters that it names")


def _comparable(adapter: Adapter) -> object:
    settings = adapter.settings
    if isinstance(settings, LoraSettings):
        return replace(settings, rank=1, alpha=1.0, dropout=0.0, targets=tuple(sorted(settings.targets)))
    if isinstance(settings, SparseSettings):
        return replace(settings, count=1, targets=tuple(sorted(settings.targets)))
    return settings
