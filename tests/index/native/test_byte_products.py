"""Products of bytes, and what is made of them, against NumPy: the same numbers whatever the processor has."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels
from tercet.index.token_vectors.integer_query import LANES, IntegerQuery
from tercet.models.representations import offsets_of

VARIANTS = [kernels.kernels_of(name) for name in kernels.AVAILABLE_INSTRUCTIONS]
TILE = 8

Array = npt.NDArray[Any]


def packed(query: Array) -> Array:
    """int8[G, S/4, 16, 4] of whole numbers [16 G, S]."""
    by_lane = query.astype(np.int8).reshape(-1, LANES, query.shape[1] // 4, 4)
    return np.ascontiguousarray(by_lane.transpose(0, 2, 1, 3))


def extremes(values: int, tokens: int, documents: int) -> tuple[Array, Array]:
    """Query and document tokens with the largest and smallest values there are, among others."""
    random = np.random.default_rng(values + tokens)
    query = random.integers(-127, 128, (tokens, values))
    document = random.integers(-128, 128, (documents, values))
    query[3], query[4], document[0], document[1] = 127, -127, 127, -128
    return query, document


@pytest.mark.parametrize("values", [64, 128, 1024])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_products_are_those_of_whole_numbers(values: int, groups: int) -> None:
    query, document = extremes(values, groups * LANES, 3 * TILE)
    sums = (128 * query.sum(axis=1)).astype(np.int32).reshape(groups, LANES)
    tiles = (document + 128).astype(np.uint8).reshape(3, TILE, values)
    products = document @ query.T
    shift = int(np.abs(products).max() >> 15).bit_length()
    for variant in VARIANTS:
        found = np.empty((3 * TILE, groups * LANES), np.int16)
        variant["centroid_products"](packed(query), sums, tiles, shift, found)
        np.testing.assert_array_equal(found, products >> shift)


def near_reference(query: IntegerQuery, codes: Array, scales: Array) -> float:
    """As the kernels have it: whole products, then float32 to the best, then float64 in order."""
    groups, steps = query.packed.shape[:2]
    values = query.packed.transpose(0, 2, 1, 3).reshape(groups * LANES, steps * 4).astype(np.int64)
    wide = np.zeros((len(codes), steps * 4), np.int64)
    wide[:, : codes.shape[1]] = codes
    best = ((wide @ values.T).astype(np.float32) * scales[:, None]).max(axis=0)
    total = 0.0
    for product in best.astype(np.float64) * query.scales.reshape(-1).astype(np.float64):
        total += product
    return float(total / len(query.vectors))


@pytest.mark.parametrize("width", [0, 2, 4, 8])
@pytest.mark.parametrize("tokens", [1, 16, 33])
def test_scores_are_those_of_their_formula_on_all_processors(width: int, tokens: int) -> None:
    random = np.random.default_rng(width + tokens)
    pieces, size = (10, 10 * width) if width else (80, 80)
    offsets = offsets_of(np.array([1, 0, 7, 8, 9, 30]))
    count = int(offsets[-1])
    codes, numbers = random.integers(0, 256, (count, pieces), np.uint8), None
    scales = centroids = tables = None
    if width:
        numbers = random.integers(0, 5, count, np.uint16)
        centroids = random.integers(1, 128, (5, size), np.uint8)
        tables = random.integers(1, 128, (pieces, 256, width), np.uint8)
        entries = tables[np.arange(pieces), codes].reshape(count, size)
        values = centroids[numbers].astype(np.int64) + entries - 128
        values_scales = 1 / np.sqrt(np.maximum(np.square(values).sum(axis=1), 1).astype(np.float32))
    else:
        scales = random.random(count, np.float32)
        values, values_scales = codes.view(np.int8).astype(np.int64), scales
    records = (kernels.token_store(codes, scales, numbers, offsets),)
    query = IntegerQuery.of(random.standard_normal((tokens, size)))
    rows = np.array([5, 0, 1, 2, 3, 4, 5])
    texts = (records, np.zeros_like(rows), offsets[rows], offsets[rows + 1], centroids, tables)
    found = [variant["near_maxsim"](*texts, *query.arguments) for variant in VARIANTS]
    exact = [variant["exact_maxsim"](*texts, *query.arguments) for variant in VARIANTS]
    for place, row in enumerate(rows.tolist()):
        own = slice(offsets[row], offsets[row + 1])
        if row == 1:
            assert (found[0][0][place], found[0][1][place], exact[0][place]) == (0, 0, 0)
            continue
        assert found[0][0][place] == near_reference(query, values[own], values_scales[own])
        stored = values[own].astype(np.float64) * values_scales[own].astype(np.float64)[:, None]
        formula = (query.vectors[:, :size] @ stored.T).max(axis=1).mean()
        assert exact[0][place] == pytest.approx(formula, abs=1e-12 * np.abs(stored).sum())
        assert abs(found[0][0][place] - formula) <= found[0][1][place]
    for (near, errors), scores in zip(found, exact, strict=True):
        np.testing.assert_array_equal(near, found[0][0])
        np.testing.assert_array_equal(errors, found[0][1])
        np.testing.assert_array_equal(scores, exact[0])


def test_codes_that_do_not_fit_are_damage() -> None:
    query = IntegerQuery.of(np.ones((1, 8)))
    where = (np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, 2))
    codes, offsets = np.zeros((2, 2), np.uint8), np.array([0, 2])
    book = np.zeros((3, 8), np.uint8), np.zeros((2, 256, 4), np.uint8)
    whole = kernels.token_store(codes, None, np.zeros(2, np.uint16), offsets)
    beyond = kernels.token_store(codes, None, np.array([0, 3], np.uint16), offsets)
    wide = kernels.token_store(np.zeros((2, 65), np.uint8), np.ones(2, np.float32), None, offsets)
    without = kernels.token_store(codes, None, None, offsets)
    for variant in VARIANTS:
        for kernel in ("near_maxsim", "exact_maxsim"):
            variant[kernel]((whole,), *where, *book, *query.arguments)
            for record in (beyond, wide, without):
                with pytest.raises(DamagedIndexError):
                    variant[kernel]((record,), *where, *book, *query.arguments)
            with pytest.raises(DamagedIndexError, match="where the tokens of a text lie"):
                variant[kernel]((whole,), *where[:2], np.full(1, 3), *book, *query.arguments)
            with pytest.raises(DamagedIndexError):
                variant[kernel]((whole,), *where, None, None, *query.arguments)


@pytest.mark.parametrize("lanes", [16, 32, 48, 80])
def test_scores_of_centroids_are_sums_of_the_best(lanes: int) -> None:
    random = np.random.default_rng(lanes)
    values = random.integers(-(2**15) + 1, 2**15, (24, lanes), np.int16)
    scales = random.random(lanes)
    offsets = offsets_of(np.array([0, 1, 2, 40]))
    numbers = random.integers(0, 24, 43, np.uint16)
    record = kernels.token_store(np.zeros((43, 1), np.uint8), None, numbers, offsets)
    rows = np.array([3, 0, 1, 2])
    for variant in VARIANTS:
        found = variant["centroid_maxsim"](
            values, scales, (record,), np.zeros_like(rows), offsets[rows], offsets[rows + 1]
        )
        for row, score in zip(rows.tolist(), found.tolist(), strict=True):
            own = values[numbers[offsets[row] : offsets[row + 1]]]
            expected = 0.0
            for term in (own.max(axis=0) * scales).tolist() if len(own) else []:
                expected += term
            assert score == expected
