"""Tables of 4-bit blocks: found where they are, exact, and refused where a value would change."""

import numpy as np
import pytest

from tercet.models.int8.four_bits import BLOCK, FourBitTable, four_bit_table


def made(numbers: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """The table of whole numbers [R, C] and scales [R, C/32], written out."""
    return numbers.astype(np.float32) * np.repeat(scales.astype(np.float16).astype(np.float32), BLOCK, axis=1)


@pytest.mark.parametrize("largest", [-8, 7, 3, -1])
def test_a_table_of_blocks_is_found_whatever_its_largest_number(largest: int) -> None:
    random = np.random.default_rng(1)
    most = abs(largest)
    numbers = random.integers(-most + (largest > 0), most, (5, 2 * BLOCK))
    numbers[:, [0, BLOCK]] = largest
    table = made(numbers, random.uniform(0.001, 2, (5, 2)))
    found = four_bit_table(table)
    assert found is not None
    np.testing.assert_array_equal(found.values(), table)
    assert found.numbers.nbytes + found.scales.nbytes == 5 * 2 * (BLOCK // 2 + 2)


def test_by_hand() -> None:
    row = np.zeros((1, BLOCK), np.float32)
    row[0, :3] = [-4.0, 0.5, 3.5]
    found = four_bit_table(row)
    assert found is not None
    assert found.scales.tolist() == [[0.5]]
    assert found.numbers[0, :2].tolist() == [0 | 9 << 4, 15 | 8 << 4]  # -8, 1; 7, 0; each plus 8


def test_a_block_of_zeros_has_no_scale() -> None:
    found = four_bit_table(np.zeros((2, BLOCK), np.float32))
    assert found is not None
    np.testing.assert_array_equal(found.values(), 0)


@pytest.mark.parametrize("place", [(0, 0), (3, 40)])
def test_one_value_between_the_steps_keeps_the_table_as_it_is(place: tuple[int, int]) -> None:
    table = made(np.tile(np.arange(-8, 8), (4, 4)), np.full((4, 2), 0.25))
    assert four_bit_table(table) is not None
    table[place] += 0.001
    assert four_bit_table(table) is None


def test_extremes_and_other_widths_are_no_such_table() -> None:
    assert four_bit_table(np.full((1, BLOCK), 1e30, np.float32)) is None
    assert four_bit_table(np.full((1, BLOCK), np.nan, np.float32)) is None
    assert four_bit_table(np.ones((2, BLOCK + 1), np.float32)) is None
    assert FourBitTable(np.zeros((1, 16), np.uint8), np.ones((1, 1), np.float16)).values().min() == -8
