"""Merged adapters against dense matrices and numbers by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tercet.models.adapters.blocks import ROLES, BodyShape, Role
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.merging import cut_rank, merge_adapters, merge_weights
from tercet.models.adapters.record import Adapter, AdapterBase
from tercet.models.adapters.settings import (
    BiasSettings,
    BottleneckSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
    StackSettings,
)
from tercet.models.errors import CheckpointError
from tercet.models.representations import Float32
from tercet.models.weights.head_weights import HeadWeights, LinearHead

BASE = AdapterBase("tiny", "f" * 64, BodyShape(1, 4, 8))


def made(chosen: AdapterSettings, seed: int, **options: Any) -> Adapter:
    random = np.random.default_rng(seed)
    shapes = chosen.shapes(BASE.body)
    arrays = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return Adapter(chosen, BASE, arrays, **options)


def heads(value: float, size: int = 2) -> HeadWeights:
    return HeadWeights(*(LinearHead(filled((rows, 4), value), filled((rows,), value)) for rows in (1, size)))


def filled(shape: tuple[int, ...], value: float) -> Float32:
    return np.full(shape, value, np.float32)


def delta(adapter: Adapter, place: str) -> Any:
    """The dense change of a place, float64[out, in]."""
    assert isinstance(adapter.settings, LoraSettings)
    a, b = (adapter.arrays[f"{place}.lora_{m}"].astype(np.float64) for m in "ab")
    return adapter.settings.scale * b @ a


THREE = [
    made(LoraSettings(rank=2, alpha=4.0, targets=("query", "output")), 0),
    made(LoraSettings(rank=1, alpha=3.0, targets=("output", "query")), 1),
    made(LoraSettings(rank=3, alpha=1.0, targets=("query", "output")), 2),
]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=3, max_size=3))
def test_lora_is_merged_exactly(weights: list[float]) -> None:
    merged = merge_adapters(THREE, "arithmetic", weights)
    assert isinstance(merged.settings, LoraSettings)
    assert merged.settings.rank == 6
    for place in ("layers.0.query", "layers.0.output"):
        expected = sum(w * delta(adapter, place) for w, adapter in zip(weights, THREE, strict=True))
        np.testing.assert_allclose(delta(merged, place), expected, atol=1e-5)


def test_the_mean_of_products_is_not_the_product_of_means() -> None:
    one = made(LoraSettings(rank=2, alpha=2.0), 0)
    other = made(LoraSettings(rank=2, alpha=2.0), 1)
    merged, place = merge_adapters([one, other]), "layers.0.query"
    apart = (one.arrays[f"{place}.lora_b"] + other.arrays[f"{place}.lora_b"]) @ (
        one.arrays[f"{place}.lora_a"] + other.arrays[f"{place}.lora_a"]
    )
    exact = (delta(one, place) + delta(other, place)) / 2
    np.testing.assert_allclose(delta(merged, place), exact, atol=1e-6)
    assert abs(apart / 4 - exact).max() > 0.1


def test_rank_keeps_the_largest_singular_values() -> None:
    place = "layers.0.query"
    whole = merge_adapters(THREE)
    u, values, v = np.linalg.svd(delta(whole, place))
    for rank in (1, 2, 4):
        cut = merge_adapters(THREE, rank=rank)
        nearest = u[:, :rank] * values[:rank] @ v[:rank]
        np.testing.assert_allclose(delta(cut, place), nearest, atol=1e-5)
    # Ranks above that of the matrix pad with zeros.
    np.testing.assert_allclose(delta(merge_adapters(THREE, rank=9), place), delta(whole, place), atol=1e-5)


def test_cut_rank_shapes() -> None:
    down, up = cut_rank(np.ones((3, 4), np.float32), np.ones((5, 3), np.float32), 2)
    assert (down.shape, up.shape, down.dtype, up.dtype) == ((2, 4), (5, 2), np.float32, np.float32)
    np.testing.assert_allclose(up @ down, np.full((5, 4), 3), atol=1e-5)


def test_ia3_is_merged_as_its_distance_from_the_identity() -> None:
    key = Ia3Settings(("key",))
    values = {"layers.0.key.scale": np.array([2, 1, 0, 1], np.float32)}
    others = {"layers.0.key.scale": np.array([1, 3, 1, 1], np.float32)}
    one, other = Adapter(key, BASE, values), Adapter(key, BASE, others)

    def scales(method: Any, weights: list[float]) -> list[float]:
        return list(merge_adapters([one, other], method, weights).arrays["layers.0.key.scale"].tolist())

    assert scales("average", []) == [1.5, 2, 0.5, 1]
    assert scales("weighted", [1, 3]) == [1.25, 2.5, 0.75, 1]
    assert scales("arithmetic", [1, 1]) == [2, 3, 0, 1]
    assert scales("arithmetic", [1, -1]) == [2, -1, 0, 1]


def test_changes_of_biases_add_up() -> None:
    chosen = BiasSettings(("value",))
    values, others = (
        {"layers.0.value.bias": np.array(bias, np.float32)} for bias in ([2, 1, 0, 1], [0, 1, 4, -1])
    )
    one, other = Adapter(chosen, BASE, values), Adapter(chosen, BASE, others)
    for weights, expected in (([1, 1], [2, 2, 4, 0]), ([1, -1], [2, 0, -4, 2]), ([0.5, 0], [1, 0.5, 0, 0.5])):
        merged = merge_adapters([one, other], "arithmetic", weights)
        assert merged.arrays["layers.0.value.bias"].tolist() == expected


def test_sparse_changes_add_up_with_the_places_of_all() -> None:
    def sparse(indices: list[int], values: list[float], roles: tuple[Role, ...] = ROLES) -> Adapter:
        arrays = {"indices": np.array(indices, np.int32), "values": np.array(values, np.float32)}
        return Adapter(SparseSettings(len(indices), roles), BASE, arrays)

    one, other = sparse([2, 5, 127], [1, 2, 3]), sparse([0, 5], [4, 8], ROLES[::-1])
    for method, weights, expected in (
        ("average", [], [2, 0.5, 5, 1.5]),
        ("arithmetic", [1, -1], [-4, 1, -6, 3]),
    ):
        merged = merge_adapters([one, other], method, weights)  # type: ignore[arg-type]  # a method
        assert merged.arrays["indices"].tolist() == [0, 2, 5, 127]
        assert merged.arrays["values"].tolist() == expected
        assert merged.settings == SparseSettings(4, ROLES)


@pytest.mark.parametrize(
    "chosen", [PrefixSettings(2), PromptSettings(2), BottleneckSettings(3), MixAndMatchSettings(2, 3)]
)
def test_prefix_and_bottleneck_average_their_parameters(chosen: AdapterSettings) -> None:
    a, b, c = (made(chosen, seed) for seed in range(3))
    merged = merge_adapters([a, b, c], "arithmetic", [1, 1, -1])
    for name, array in merged.arrays.items():
        np.testing.assert_allclose(array, a.arrays[name] + b.arrays[name] - c.arrays[name], atol=1e-6)
    with pytest.raises(CheckpointError, match="the weights sum to 2"):
        merge_adapters([a, b], "arithmetic", [1, 1])


def test_heads() -> None:
    chosen = Ia3Settings(("key",))
    a, b = made(chosen, 0, heads=heads(1)), made(chosen, 1, heads=heads(3))
    merged = merge_adapters([a, b], "weighted", [1, 3])
    assert merged.heads is not None
    assert np.unique(merged.heads.both()[1].weight).tolist() == [2.5]
    with pytest.raises(CheckpointError, match="heads have no zero"):
        merge_adapters([a, b], "arithmetic", [1, 1])
    with pytest.raises(CheckpointError, match="either all adapters have heads"):
        merge_adapters([a, made(chosen, 1)])
    with pytest.raises(CheckpointError, match="of one size"):
        merge_adapters([a, made(chosen, 1, heads=heads(1, 3))])


@pytest.mark.parametrize(
    ("count", "method", "weights", "expected"),
    [
        (4, "average", [], [0.25] * 4),
        (2, "weighted", [1, 3], [0.25, 0.75]),
        (3, "arithmetic", [1, 1, -1], [1, 1, -1]),
    ],
)
def test_weights(count: int, method: Any, weights: list[float], expected: list[float]) -> None:
    assert merge_weights(count, method, weights) == expected


@pytest.mark.parametrize(
    ("count", "method", "weights", "message"),
    [
        (1, "average", [], "takes two or more"),
        (0, "average", [], "takes two or more"),
        (2, "average", [1, 2], "average takes no weights"),
        (2, "weighted", [1], "as many finite weights"),
        (2, "weighted", [1, -1], "weights from 0"),
        (2, "weighted", [0, 0], "not all 0"),
        (2, "arithmetic", [1, float("nan")], "finite"),
    ],
)
def test_weights_that_do_not_fit(count: int, method: Any, weights: list[float], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        merge_weights(count, method, weights)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (made(Ia3Settings(), 0), made(PrefixSettings(2), 0), "one kind and the same settings"),
        (made(PrefixSettings(3), 0), made(PrefixSettings(2), 0), "one kind and the same settings"),
        (made(LoraSettings(), 0), made(LoraSettings(targets=("key",)), 0), "one kind and the same settings"),
        (
            Adapter(StackSettings(("a", "b")), BASE),
            Adapter(StackSettings(("a", "b")), BASE),
            "a stack has no parameters",
        ),
        (
            made(Ia3Settings(), 0),
            replace(made(Ia3Settings(), 0), base=replace(BASE, fingerprint="0")),
            "adapters of two bases",
        ),
    ],
)
def test_adapters_that_cannot_be_merged(one: Adapter, other: Adapter, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        merge_adapters([one, other])


def test_a_rank_is_for_lora_only() -> None:
    with pytest.raises(CheckpointError, match="kind ia3 have none"):
        merge_adapters([made(Ia3Settings(), 0), made(Ia3Settings(), 1)], rank=2)
