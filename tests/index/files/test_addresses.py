"""Addresses of arrays, which compiled loops read without asking what lies there."""

import numpy as np
import pytest
from numba import njit

from index.files.addresses import address_of, array_at, bring_near


@njit
def _sum(address: int, count: int) -> float:
    total = 0.0
    for value in array_at(address, count, np.float32):
        total += value
    return total


def test_compiled_code_reads_what_lies_at_an_address() -> None:
    array = np.arange(10, dtype=np.float32)
    array.flags.writeable = False
    assert _sum(address_of(array, np.float32), 10) == 45
    assert _sum(address_of(array[8:], np.float32), 2) == 17


@njit
def _sum_brought_near(address: int, count: int, asked: int) -> float:
    bring_near(address, asked)
    return _sum(address, count)


@pytest.mark.parametrize("asked", [0, 1, 40, 1 << 40])
def test_asking_ahead_changes_nothing_even_past_the_end(asked: int) -> None:
    array = np.arange(10, dtype=np.float32)
    assert _sum_brought_near(address_of(array, np.float32), 10, asked) == 45


@pytest.mark.parametrize("array", [np.zeros(4), np.zeros(8, np.float32)[::2], np.zeros((3, 2), np.float32).T])
def test_arrays_of_another_type_or_with_gaps_are_refused(array: np.ndarray) -> None:
    with pytest.raises(ValueError, match="cannot be read as float32"):
        address_of(array, np.float32)
