"""Products with float16 rows in the order of sums that all variants have, and scans of stretches."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels

CHAINS = 4
VARIANTS = [kernels.kernels_of(name) for name in kernels.AVAILABLE_INSTRUCTIONS]
EXTREMES = [0, -0.0, 6e-8, -6e-8, 65504, -65504]
NO_NUMBERS, NO_BITS = np.empty(0, np.int64), np.empty(0, np.uint8)

Array = npt.NDArray[Any]


def reference(row: Array, query: Array, dtype: Any, lanes: int) -> Any:
    """Four chains of lanes, these together, halves added to halves, and then what is left."""
    products = row.astype(dtype) * query.astype(dtype)
    whole = len(row) // (CHAINS * lanes) * CHAINS * lanes
    sums = np.zeros((CHAINS, lanes), dtype)
    for block in products[:whole].reshape(-1, CHAINS, lanes):
        sums += block
    together = (sums[0] + sums[1]) + (sums[2] + sums[3])
    while len(together) > 1:
        together = together[: len(together) // 2] + together[len(together) // 2 :]
    total = together[0]
    for product in products[whole:]:
        total += product
    return total


@pytest.mark.parametrize("dimension", [1, 15, 31, 32, 33, 63, 64, 65, 100, 128, 384])
def test_products_have_one_order_of_sums(dimension: int) -> None:
    random = np.random.default_rng(dimension)
    first, last = (random.standard_normal((count, dimension)).astype(np.float16) for count in (9, 4))
    first.reshape(-1)[: len(EXTREMES)] = EXTREMES[: first.size]
    query = random.standard_normal(dimension).astype(np.float32)
    records = tuple(map(kernels.dense_vectors, (first, np.empty((0, dimension), np.float16), last)))
    places, rows = random.choice([0, 2], 40), random.integers(0, 4, 40)
    rows[places == 0] = random.integers(0, 9, np.count_nonzero(places == 0))
    stored = [(last if place else first)[row] for place, row in zip(places, rows, strict=True)]
    for variant in VARIANTS:
        found = variant["products_at"](records, places, rows, query)
        assert found.tolist() == [float(reference(row, query, np.float32, 16)) for row in stored]
        exact = variant["exact_products_at"](records, places, rows, query)
        assert exact.tolist() == [float(reference(row, query, np.float64, 8)) for row in stored]
        for products in ("products_at", "exact_products_at"):
            assert len(variant[products](records, places[:0], rows[:0], query)) == 0


@pytest.mark.parametrize("dimension", [1, 64])
def test_every_float16_has_its_value(dimension: int) -> None:
    """Subnormal numbers, infinities and what is no number, too."""
    stored = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    rows = np.zeros((len(stored), dimension), np.float16)
    rows[:, 0] = stored
    query = np.eye(1, dimension, dtype=np.float32)[0]
    with np.errstate(invalid="ignore"):  # ARM's NumPy warns of signalling ones among what is no number
        expected = stored.astype(np.float32)
    for variant in VARIANTS:
        for products in ("products_at", "exact_products_at"):
            found = variant[products](
                (kernels.dense_vectors(rows),), np.zeros(len(rows), np.int64), np.arange(len(rows)), query
            )
            np.testing.assert_array_equal(found, expected)


def scan(variant: dict[str, Callable[..., Any]], vectors: Array, stretches: Any, **other: Any) -> Any:
    given = {
        "numbers": NO_NUMBERS,
        "bits": NO_BITS,
        "query": np.array([1, 0], np.float32),
        "k": 2,
        "floor": np.full(1, -np.inf, np.float32),
    } | other
    table = np.array(stretches, np.int64).reshape(-1, 6)
    return variant["scan_vectors"]((kernels.dense_vectors(vectors),), table, *given.values())


def test_stretches_say_which_rows_count() -> None:
    vectors = np.array([[value, 0] for value in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3)], np.float16)
    bits = np.packbits([0] * 8 + [0, 1, 1, 0, 0, 1, 0, 0, 0, 1], bitorder="little")
    for variant in VARIANTS:
        for stretch, expected in (
            ((7, 0, 2, 5, 0, -1), [2, 3, 4]),
            ((7, 0, 1, 3, 1, -1), [0, 8]),
            ((7, 0, 1, 9, 0, 1), [1, 2, 5]),
        ):
            given = {"numbers": np.array([9, 0, 8]), "bits": bits, "k": 10}
            places, rows, scores = scan(variant, vectors, [stretch], **given)
            assert rows.tolist() == expected
            assert places.tolist() == [7] * len(expected)
            assert scores.tolist() == vectors[expected, 0].tolist()
        assert [len(each) for each in scan(variant, vectors, [])] == [0, 0, 0]


def test_the_floor_is_that_of_all_and_is_raised() -> None:
    vectors = np.array([[value, 0] for value in range(100)], np.float16)
    for variant in VARIANTS:
        floor = np.full(1, 50, np.float32)
        _, rows, _ = scan(variant, vectors, [(0, 0, 0, 100, 0, -1)], floor=floor)
        assert set(range(98, 100)) <= set(rows.tolist()) <= set(range(50, 100))
        assert 50 < floor[0] <= 98


@pytest.mark.parametrize(
    ("stretch", "message"),
    [
        (
            (0, 1, 0, 1, 0, -1),
            "the segment of a stretch in what scan_vectors reads is 1, outside of 0 up to 1",
        ),
        ((0, 0, 0, 4, 0, -1), "the end of a stretch in what scan_vectors reads is 4, outside of 0 up to 4"),
        ((0, 0, -1, 3, 0, -1), "the beginning of a stretch in what scan_vectors reads is -1"),
        ((0, 0, 0, 2, 1, -1), "a row in what scan_vectors reads is 3, outside of 0 up to 3"),
        ((0, 0, 0, 3, 0, 1), "the beginning of bits in what scan_vectors reads is 1, outside of 0 up to 1"),
    ],
)
def test_rows_that_are_not_there_are_refused(stretch: tuple[int, ...], message: str) -> None:
    vectors, numbers, bits = np.zeros((3, 2), np.float16), np.array([0, 3]), np.zeros(1, np.uint8)
    with pytest.raises(DamagedIndexError, match=message):
        scan(VARIANTS[0], vectors, [stretch], numbers=numbers, bits=bits)


def test_a_query_of_another_dimension_is_refused() -> None:
    records = (kernels.dense_vectors(np.zeros((3, 2), np.float16)),)
    one = np.zeros(1, np.int64)
    with pytest.raises(DamagedIndexError, match="a dimension in what products_at reads is 2"):
        kernels.products_at(records, one, one, np.zeros(1, np.float32))
    with pytest.raises(DamagedIndexError, match="a row in what exact_products_at reads is 3"):
        kernels.exact_products_at(records, one, one + 3, np.zeros(2, np.float32))
