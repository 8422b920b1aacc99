"""Directions between languages and heads without them, in numbers that a person can follow."""

from __future__ import annotations

import numpy as np

from tercet.models.representations import Float32
from tercet.models.weights.dense_layers import DenseLayer
from tercet.models.weights.head_weights import HeadWeights, LinearHead
from tercet.models.weights.neutral_heads import language_directions, neutral_heads, projection_without


def array(*rows: tuple[float, ...]) -> Float32:
    return np.array(rows, np.float32)


# Two languages lie apart along the first axis, and a third a little along the second.
MEANS = array((3.0, 0.0, 1.0), (-3.0, 0.0, 1.0), (0.0, 1.0, 1.0))
FIRST, SECOND, THIRD = np.eye(3, dtype=np.float32)


def test_directions_are_those_in_which_means_differ_most() -> None:
    directions = np.abs(language_directions(MEANS, 2))
    np.testing.assert_allclose(directions, [FIRST, SECOND], atol=1e-6)
    np.testing.assert_allclose(
        projection_without(language_directions(MEANS, 1)), np.diag([0, 1, 1]), atol=1e-6
    )


def test_a_query_finds_its_answer_in_another_language_and_its_own_keeps_its_order() -> None:
    """Languages are the first axis; what a text says are the others."""
    own = array((1.0, 0.8, 0.2), (1.0, 0.5, 0.5), (1.0, 0.1, 0.9))
    other = own * array((-1.0, 1.0, 1.0))
    query = own[0]
    apart, together = own @ query, (own * array((0.0, 1.0, 1.0))) @ query
    projection = projection_without(language_directions(MEANS, 1))
    assert (other @ query).max() < apart.min()
    np.testing.assert_allclose((own @ projection) @ (projection @ query), together, atol=1e-6)
    np.testing.assert_allclose((other @ projection) @ (projection @ query), together, atol=1e-6)
    assert np.argsort(-together).tolist() == np.argsort(-apart).tolist() == [0, 1, 2]


def test_token_vectors_have_it_in_their_head_and_dense_vectors_in_a_layer() -> None:
    lexical = LinearHead(array((1.0, 2.0, 3.0)), np.array([0.5], np.float32))
    heads = HeadWeights(lexical, LinearHead(np.eye(3, dtype=np.float32), np.ones(3, np.float32)))
    neutral = neutral_heads(heads, FIRST[None], SECOND[None])
    assert neutral.sparse is lexical
    assert neutral.colbert is not None
    np.testing.assert_array_equal(neutral.colbert.weight, np.diag([1, 0, 1]))
    np.testing.assert_array_equal(neutral.colbert.bias, [1, 0, 1])
    (layer,) = neutral.dense
    np.testing.assert_array_equal(layer.weight, np.diag([0, 1, 1]))
    again = neutral_heads(neutral, THIRD[None], None)
    assert again.colbert is neutral.colbert
    (layer,) = again.dense  # one linear layer after another is one
    np.testing.assert_array_equal(layer.weight, np.diag([0, 1, 0]))


def test_a_layer_with_an_activation_is_followed_by_another() -> None:
    curved = DenseLayer(np.eye(3, dtype=np.float32), None, "tanh")
    neutral = neutral_heads(HeadWeights(dense=(curved,), tokens=(curved,)), FIRST[None], FIRST[None])
    for layers in (neutral.dense, neutral.tokens):
        assert layers[0] is curved
        np.testing.assert_array_equal(layers[1].weight, np.diag([0, 1, 1]))
