"""Bits, counts and groups of rows beside NumPy."""

import numpy as np
import pytest

from tercet.index.errors import DamagedIndexError
from tercet.index.native import kernels
from tercet.models.representations import offsets_of

VARIANTS = [kernels.kernels_of(name) for name in kernels.AVAILABLE_INSTRUCTIONS]


@pytest.mark.parametrize("count", [0, 1, 8, 1_000])
def test_bits_are_set(count: int) -> None:
    mask = np.random.default_rng(count).random(max(count, 1)) < 0.4
    for variant in VARIANTS:
        packed = np.zeros(-(-len(mask) // 8), np.uint8)
        variant["set_bits"](np.flatnonzero(mask).astype(np.uint32), packed)
        np.testing.assert_array_equal(packed, np.packbits(mask, bitorder="little"))
    with pytest.raises(DamagedIndexError, match="a row in what set_bits reads is 8, outside of 0 up to 8"):
        kernels.set_bits(np.array([8], np.uint32), np.zeros(1, np.uint8))


@pytest.mark.parametrize(("places", "values"), [(0, 0), (0, 3), (1, 1), (300, 4), (300, 500)])
def test_rows_are_counted_and_grouped_by_value(places: int, values: int) -> None:
    random = np.random.default_rng(places + values)
    codes = random.integers(0, values, places).astype(np.int32) if places else np.empty(0, np.int32)
    rows = np.sort(random.integers(0, 100, places))
    groups = [sorted(set(rows[codes == value].tolist())) for value in range(values)]
    for variant in VARIANTS:
        counts = variant["count_rows"](codes, rows, values)
        assert counts.tolist() == [len(group) for group in groups]
        grouped = variant["group_rows"](codes, rows, offsets_of(counts))
        assert grouped.tolist() == [row for group in groups for row in group]


def test_codes_that_name_no_value_are_refused() -> None:
    codes, rows = np.array([0, 2], np.int32), np.zeros(2, np.int64)
    for count in (
        lambda: kernels.count_rows(codes, rows, 2),
        lambda: kernels.group_rows(codes, rows, np.array([0, 1, 2])),
    ):
        with pytest.raises(DamagedIndexError, match=r"the code of a value in what .* reads is 2"):
            count()


@pytest.mark.parametrize("width", [1, 8, 13])
def test_float16_rows_have_the_same_values_as_float32(width: int) -> None:
    bits = np.arange(width << 13, dtype=np.uint32).astype(np.uint16).reshape(-1, width)
    stored, rows = bits.view(np.float16), np.random.default_rng(width).integers(0, len(bits), 300)
    with np.errstate(invalid="ignore"):  # ARM's NumPy warns of signalling ones among what is no number
        expected = stored[rows].astype(np.float32)
    for variant in VARIANTS:
        values = np.empty((len(rows), width), np.float32)
        variant["widen_rows"](stored, rows, values)
        np.testing.assert_array_equal(values, expected)
    with pytest.raises(DamagedIndexError, match="a row in what widen_rows reads is -1"):
        kernels.widen_rows(stored, np.array([-1]), np.empty((1, width), np.float32))
