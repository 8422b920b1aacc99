"""Counts of the rows that are left: the same whenever they are read, and counted anew only then."""

import numpy as np
import pytest

from tercet.index.sparse import left_counts
from tercet.index.sparse.left_counts import LeftCounts
from tercet.models.representations import Int64

VALUES = np.array([5, 7, 11, 13, 17])  # of five rows; what is counted is their sum


class Sums:
    """Counts, and how often they were taken."""

    def __init__(self) -> None:
        self.subtracted = 0

    def subtract(self, total: int, rows: Int64) -> int:
        self.subtracted += 1
        return total - int(VALUES[rows].sum())


def test_deleted_rows_are_subtracted_once_when_the_counts_are_read() -> None:
    sums = Sums()
    whole = LeftCounts(53, sums.subtract)
    some = whole.without(np.array([1])).without(np.array([0, 4]))
    assert sums.subtracted == 0
    assert [some.read(), some.read()] == [24, 24]
    assert sums.subtracted == 1
    assert some.without(np.array([2])).read() == 13  # goes on from what was read
    assert sums.subtracted == 2
    assert whole.read() == 53


def test_no_more_than_a_bounded_number_of_writes_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_counts, "PENDING_WRITES", 2)
    sums = Sums()
    left = LeftCounts(53, sums.subtract)
    for row, subtracted in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 1)):
        left = left.without(np.array([row]))
        assert sums.subtracted == subtracted
    assert left.read() == 0
