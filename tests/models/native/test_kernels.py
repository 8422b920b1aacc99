"""The kernels against NumPy, on every variant of the processor: the same numbers to the last bit."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from tercet.models.errors import CheckpointError
from tercet.models.native.kernels import AVAILABLE_INSTRUCTIONS, Record, encoder_layer, kernels_of
from tercet.models.native.kernels import run_layers as run_layers_here
from tercet.models.native.panels import by_lanes, byte_panels, short_panels

WIDTH, INNER, HEADS, EPSILON = 192, 208, 16, 1e-6
HEAD_COUNTS = (HEADS, 6, 3)  # of 12, 32 and 64 values; the latter two have code of their own
LENGTHS = (1, 70, 13, 2)
OFFSETS = np.concatenate([[0], np.cumsum(LENGTHS)])


class Layer:
    """A random layer, as arrays and as a record."""

    def __init__(self, random: np.random.Generator) -> None:
        shapes = {
            "into": (WIDTH, 3 * WIDTH),
            "out": (WIDTH, WIDTH),
            "rise": (WIDTH, INNER),
            "fall": (INNER, WIDTH),
        }
        self.numbers = {
            name: random.integers(-63, 64, shape).astype(np.int8) for name, shape in shapes.items()
        }
        self.scales = {name: random.uniform(0.0005, 0.0015, shape[1]) for name, shape in shapes.items()}
        self.biases = {name: random.normal(0, 0.1, shape[1]) for name, shape in shapes.items()}
        self.norms = [random.normal(1, 0.2, WIDTH) for _ in range(4)]

    @property
    def record(self) -> Record:
        """Its arrays, as kernels take them."""
        parts = {
            name: (
                byte_panels(numbers),
                *(by_lanes(values[name].astype(np.float32)) for values in (self.scales, self.biases)),
            )
            for name, numbers in self.numbers.items()
        }
        norms = [by_lanes(values.astype(np.float32)) for values in self.norms]
        return encoder_layer(
            *parts["into"], *parts["out"], *norms[:2], *parts["rise"], *parts["fall"], *norms[2:]
        )

    def product(self, name: str, rows: np.ndarray) -> np.ndarray:
        """As `tercet.models.int8.quantize` defines it."""
        scales = np.abs(rows).max(axis=1, keepdims=True) / 127
        numbers = np.rint(rows / scales)
        return (
            numbers @ self.numbers[name].astype(np.float64) * scales * self.scales[name] + self.biases[name]
        )


def normalized(rows: np.ndarray, weights: np.ndarray, biases: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * weights + biases


def expected_states(layers: list[Layer], states: np.ndarray, heads: int) -> np.ndarray:
    """The layers in float64, each text by itself."""
    gelu = np.vectorize(lambda value: value * (1 + math.erf(value / math.sqrt(2))) / 2)
    for layer in layers:
        projected = layer.product("into", states)
        attended = np.empty_like(states)
        for start, end in pairwise(OFFSETS):
            parts = projected[start:end].reshape(end - start, 3, heads, -1).transpose(1, 2, 0, 3)
            scores = parts[0] @ parts[1].transpose(0, 2, 1) / math.sqrt(WIDTH // heads)
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            found = shares / shares.sum(axis=-1, keepdims=True) @ parts[2]
            attended[start:end] = found.transpose(1, 0, 2).reshape(end - start, WIDTH)
        states = normalized(states + layer.product("out", attended), *layer.norms[:2])
        risen = gelu(layer.product("rise", states))
        states = normalized(states + layer.product("fall", risen), *layer.norms[2:])
    return states


@pytest.fixture(scope="module")
def layers() -> list[Layer]:
    random = np.random.default_rng(0)
    return [Layer(random) for _ in range(2)]


@pytest.fixture
def states() -> np.ndarray:
    return np.random.default_rng(1).normal(0, 1, (int(OFFSETS[-1]), WIDTH)).astype(np.float32)


def run(
    layers: list[Layer], states: np.ndarray, offsets: np.ndarray, instructions: str, heads: int = HEADS
) -> np.ndarray:
    found = states.copy()
    records = tuple(layer.record for layer in layers)
    kernels_of(instructions)["run_layers"](records, offsets, heads, EPSILON, found)
    return found


@pytest.mark.parametrize("heads", HEAD_COUNTS)
def test_layers_are_those_of_their_formula(layers: list[Layer], states: np.ndarray, heads: int) -> None:
    # One layer: a number that is rounded the other way, half a step of 127, changes what follows.
    found = run(layers[:1], states, OFFSETS, AVAILABLE_INSTRUCTIONS[0], heads)
    difference = np.abs(found - expected_states(layers[:1], states.astype(np.float64), heads))
    assert np.median(difference) < 1e-3
    assert difference.max() < 0.03


@pytest.mark.parametrize("heads", HEAD_COUNTS)
@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_every_variant_gives_the_same_numbers(
    layers: list[Layer], states: np.ndarray, instructions: str, heads: int
) -> None:
    best = run(layers, states, OFFSETS, AVAILABLE_INSTRUCTIONS[0], heads)
    np.testing.assert_array_equal(run(layers, states, OFFSETS, instructions, heads), best)


@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_a_product_and_a_sum_are_rounded_once(instructions: str) -> None:
    # The number 1 of a row scaled by 1 - 2^-15, times a column scaled by 2^-24 (1 + 2^-15), is 2^-24 - 2^-54:
    # a little less than half the last bit of what it is added to. Rounding to 53 bits first makes it half.
    layer = Layer(np.random.default_rng(0))
    layer.numbers["into"][:] = 0
    layer.numbers["into"][1] = 1
    layer.scales["into"][:] = 2.0**-24 * (1 + 2.0**-15)
    layer.biases["into"][:] = 1 + 2.0**-23
    states = np.zeros((1, WIDTH), np.float32)
    states[0, :2] = np.array([127, 1]) * (1 - 2.0**-15)
    projected = np.empty((1, 3 * WIDTH), np.float32)
    kernels_of(instructions)["project_layer"]((layer.record,), states, projected)
    assert set(projected[0].tolist()) == {1 + 2.0**-23}


@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_a_text_is_the_same_whatever_is_beside_it(
    layers: list[Layer], states: np.ndarray, instructions: str
) -> None:
    together = run(layers, states, OFFSETS, instructions)
    for start, end in pairwise(OFFSETS):
        alone = run(layers, states[start:end], np.array([0, end - start]), instructions)
        np.testing.assert_array_equal(alone, together[start:end])


@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_parts_of_a_layer_are_the_whole(layers: list[Layer], states: np.ndarray, instructions: str) -> None:
    kernels, (layer, *_) = kernels_of(instructions), layers
    found, projected = states.copy(), np.empty((len(states), 3 * WIDTH), np.float32)
    attended = np.empty_like(states)
    for rows in (slice(0, 50), slice(50, None)):
        kernels["project_layer"]((layer.record,), found[rows], projected[rows])
    for heads in ((0, 1), (1, HEADS)):
        kernels["attend_with_heads"](projected, HEADS, *heads, attended)
    for rows in (slice(0, 7), slice(7, None)):
        kernels["finish_layer"]((layer.record,), EPSILON, attended[rows], found[rows])
    np.testing.assert_array_equal(found, run([layer], states, np.array([0, len(states)]), instructions))


@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
@pytest.mark.parametrize("dimension", [5, 16, 40])
def test_heads_are_those_of_their_formula(states: np.ndarray, instructions: str, dimension: int) -> None:
    random = np.random.default_rng(2)
    weight, bias = random.normal(0, 1, (dimension, WIDTH)), random.normal(0, 1, dimension)
    panels, scales = short_panels(weight.astype(np.float32))
    vectors = np.empty((len(states), dimension), np.float32)
    kernels = kernels_of(instructions)
    kernels["project_tokens"](states, panels, scales, by_lanes(bias.astype(np.float32)), vectors)
    expected = states @ weight.T + bias
    np.testing.assert_allclose(vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=2e-3)
    weights = np.empty(len(states), np.float32)
    kernels["weigh_tokens"](states, weight[0].astype(np.float32), 0.5, weights)
    np.testing.assert_allclose(weights, np.maximum(states @ weight[0] + 0.5, 0), atol=1e-4)


@pytest.mark.parametrize(
    ("offsets", "heads", "message"),
    [
        ([0, 90], 4, "where the tokens of a text lie"),
        ([0, 50, 20, 86], 4, "where the tokens of a text lie"),
        ([0, 86], 7, "the heads"),
        ([0, 86], 0, "the heads"),
    ],
)
def test_what_cannot_be_is_refused(
    layers: list[Layer], states: np.ndarray, offsets: list[int], heads: int, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        run_layers_here((layers[0].record,), np.array(offsets), heads, EPSILON, states)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_numbers_that_are_none_end_as_none(
    layers: list[Layer], states: np.ndarray, instructions: str, value: float
) -> None:
    states[3, 7] = value
    found = run(layers, states, OFFSETS, instructions)
    assert np.isnan(found[3]).all()
    assert np.isfinite(found[0]).all()
    vectors = np.empty((len(states), 5), np.float32)
    panels, scales = short_panels(np.ones((5, WIDTH), np.float32))
    biases = by_lanes(np.ones(5, np.float32))
    kernels_of(instructions)["project_tokens"](states, panels, scales, biases, vectors)
    assert np.isfinite(vectors).all(axis=1).tolist() == [row != 3 for row in range(len(states))]


@pytest.mark.parametrize("name", ["into", "out", "rise", "fall"])
@pytest.mark.parametrize("values", ["scales", "biases"])
@pytest.mark.parametrize("instructions", AVAILABLE_INSTRUCTIONS)
def test_damaged_weights_do_not_end_as_numbers(
    states: np.ndarray, instructions: str, values: str, name: str
) -> None:
    layer = Layer(np.random.default_rng(0))
    getattr(layer, values)[name][0] = np.nan
    found = run([layer], states, OFFSETS, instructions)
    assert np.isnan(found).all()
