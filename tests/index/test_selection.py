"""The k-th largest value beside a sort."""

import numpy as np
import pytest

from index.selection import kth_largest


def test_by_hand() -> None:
    values = np.array([3, 1, 4, 1, 5], np.float32)
    assert [kth_largest(values, k) for k in range(1, 6)] == [5, 4, 3, 1, 1]
    assert values.tolist() == [3, 1, 4, 1, 5], "what is given stays as it is"


@pytest.mark.parametrize("distinct", [1, 2, 7, 10_000])
@pytest.mark.parametrize("order", ["random", "ascending", "descending"])
def test_as_a_sort_has_it(distinct: int, order: str) -> None:
    random = np.random.default_rng(distinct)
    for length in (1, 2, 3, 10, 1_000):
        values = random.integers(0, distinct, length).astype(np.float32)
        if order != "random":
            values = np.sort(values)[:: 1 if order == "ascending" else -1].copy()
        for k in {1, (length + 1) // 2, length}:
            assert kth_largest(values, k) == np.sort(values)[length - k]
