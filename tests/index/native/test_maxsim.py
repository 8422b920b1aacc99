"""Late interaction with bytes against the same in float64."""

from typing import Any

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native.kernels import exact_maxsim, near_maxsim
from tercet.index.token_vectors.integer_query import IntegerQuery
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.token_vectors.texts import StoredTexts
from tercet.models.representations import Float32, Float64, TokenVectors, offsets_of


def unit(generator: np.random.Generator, count: int, dimension: int) -> Float32:
    vectors = generator.standard_normal((count, dimension))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def stored(vectors: Float32, lengths: list[int]) -> TokenVectorStore:
    return TokenVectorStore.encode(TokenVectors(vectors, offsets_of(np.array(lengths))), "int8")


def brute_force(query: Float32, store: TokenVectorStore) -> Float64:
    scores = []
    for row in range(len(store.offsets) - 1):
        positions = slice(store.offsets[row], store.offsets[row + 1])
        values = (
            store.codes[positions].astype(np.float64) * store.scales[positions].astype(np.float64)[:, None]
        )
        scores.append((query.astype(np.float64) @ values.T).max(axis=1).mean())
    return np.array(scores)


def texts(store: TokenVectorStore) -> tuple[Any, ...]:
    """All of a store, as kernels take them."""
    return StoredTexts.of(store, np.arange(len(store.offsets) - 1)).arguments


@pytest.mark.parametrize("dimension", [3, 64, 100, 128, 384])
@pytest.mark.parametrize("tokens", [1, 16, 17, 40])
def test_scores_are_exact_and_near_ones_within_their_errors(dimension: int, tokens: int) -> None:
    generator = np.random.default_rng(dimension + tokens)
    lengths = [1, 2, 7, 8, 9, 60, 3]
    store = stored(unit(generator, sum(lengths), dimension), lengths)
    query = unit(generator, tokens, dimension)
    expected = brute_force(query, store)
    integers = IntegerQuery.of(query)
    exact = exact_maxsim(*texts(store), *integers.arguments)
    np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-12)
    near, errors = near_maxsim(*texts(store), *integers.arguments)
    assert (np.abs(near - expected) <= errors).all()
    assert errors.max() < 0.01


@pytest.mark.parametrize("between", [0, 8])
def test_the_best_token_is_found_where_bytes_prefer_another(between: int) -> None:
    """The exact score is that of the better token, whatever a query's bytes say."""
    # All but the first value are 0.495 of a byte's step, so 0 as bytes: by these, the first token is better.
    query = np.array([[1, 0.0039, 0.0039, 0.0039, 0.0039]], np.float32)
    vectors = np.zeros((2 + between, 5), np.float32)
    vectors[0, 0], vectors[-1] = 1, [126 / 127, 1, 1, 1, 1]
    store = stored(vectors, [len(vectors)])
    integers = IntegerQuery.of(query)
    assert integers.packed[0, :2, 0].tolist() == [[127, 0, 0, 0], [0, 0, 0, 0]]
    exact = exact_maxsim(*texts(store), *integers.arguments)
    assert exact[0] == pytest.approx(126 / 127 + 4 * 0.0039, abs=1e-6)


def test_the_best_token_is_found_where_bytes_are_wrong_about_both() -> None:
    """What bytes lose of a query may lie along one token and against the other: by both errors."""
    # 0.495 of a byte's step each, so 0 as bytes: these lose a vector of length 0.0039·√63 = 0.03096.
    query = np.array([[1] + 63 * [0.0039]], np.float32)
    lost = np.full(63, 1 / np.sqrt(63))
    # By bytes 0.06 and 0, nearly two errors apart; with what they lose 0.06 - 0.0309 = 0.0291, and 0.03096.
    vectors = np.zeros((2, 64), np.float32)
    vectors[0, 0], vectors[0, 1:], vectors[1, 1:] = 0.06, -np.sqrt(1 - 0.06**2) * lost, lost
    store = stored(vectors, [2])
    integers = IntegerQuery.of(query)
    assert integers.packed.reshape(-1, 4)[:, 0].tolist().count(127) == 1
    expected = brute_force(query, store)
    assert expected[0] == pytest.approx(0.0039 * np.sqrt(63), abs=1e-4)
    near, errors = near_maxsim(*texts(store), *integers.arguments)
    assert near[0] == pytest.approx(0.06, abs=1e-3)
    assert abs(near[0] - expected[0]) <= errors[0]
    np.testing.assert_allclose(exact_maxsim(*texts(store), *integers.arguments), expected, rtol=0, atol=1e-12)


def test_longer_vectors_have_larger_errors() -> None:
    generator = np.random.default_rng(0)
    vectors = unit(generator, 10, 64)
    integers = IntegerQuery.of(unit(generator, 4, 64))
    near, errors = zip(
        *(
            near_maxsim(*texts(each), *integers.arguments)
            for each in (stored(vectors, [10]), stored(100 * vectors, [10]))
        ),
        strict=True,
    )
    assert near[1][0] == pytest.approx(100 * near[0][0], rel=1e-3)
    assert errors[1][0] == pytest.approx(100 * errors[0][0], rel=1e-2)


def test_vectors_of_zeros_score_zero() -> None:
    store = stored(np.zeros((3, 8), np.float32), [2, 1])
    integers = IntegerQuery.of(np.ones((2, 8), np.float32))
    assert near_maxsim(*texts(store), *integers.arguments)[0].tolist() == [0, 0]
    assert exact_maxsim(*texts(store), *integers.arguments).tolist() == [0, 0]
    nothing = IntegerQuery.of(np.zeros((2, 8), np.float32))
    assert exact_maxsim(*texts(store), *nothing.arguments).tolist() == [0, 0]


def test_a_text_that_begins_with_zeros_has_its_scores() -> None:
    """Lanes without a query token have the product 0 with everything, as all lanes have with zeros."""
    generator = np.random.default_rng(0)
    for zeros in (1, 8, 20):
        vectors = np.concatenate([np.zeros((zeros, 8), np.float32), unit(generator, 3, 8)])
        store = stored(vectors, [zeros + 3])
        for tokens in (1, 3, 15, 16, 17):
            query = unit(generator, tokens, 8)
            integers, expected = IntegerQuery.of(query).arguments, brute_force(query, store)
            np.testing.assert_allclose(exact_maxsim(*texts(store), *integers), expected, rtol=0, atol=1e-12)
            near, errors = near_maxsim(*texts(store), *integers)
            assert (np.abs(near - expected) <= errors).all()


def test_a_query_of_other_groups_than_its_tokens_need_is_refused() -> None:
    store, integers = stored(np.ones((9, 8), np.float32), [9]), IntegerQuery.of(np.ones((5, 8), np.float32))
    packed, sums, scales, *rest = integers.arguments
    more = [np.concatenate([each, each]) for each in (packed, sums, scales)]
    for kernel in (near_maxsim, exact_maxsim):
        with pytest.raises(DamagedIndexError, match="the number of a query's tokens"):
            kernel(*texts(store), *more, *rest)
