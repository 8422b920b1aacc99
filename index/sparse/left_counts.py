"""Counts over the rows of a segment that are left, with little to do for those that are deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from tercet.models.representations import Int64

PENDING_WRITES = 256  # whose deleted rows wait to be subtracted at most

Counts = TypeVar("Counts")


class LeftCounts(Generic[Counts]):
    """Counts of which deleted rows are subtracted when they are next read, all together.

    A write deletes a few rows of many segments, and to copy all counts of each would cost more than the rest
    of the write. Any number of threads may read.
    """

    def __init__(
        self, counts: Counts, subtract: Callable[[Counts, Int64], Counts], pending: tuple[Int64, ...] = ()
    ) -> None:
        """subtract: makes counts without those of rows int64[n]; pending: rows that `counts` still has."""
        self._subtract = subtract
        self._counted = counts, pending

    def without(self, rows: Int64) -> LeftCounts[Counts]:
        """Those without these rows, too: distinct ones that they have."""
        counts, pending = self._counted
        left = LeftCounts(counts, self._subtract, (*pending, rows))
        if len(pending) >= PENDING_WRITES:
            left.read()
        return left

    def read(self) -> Counts:
        """The counts of the rows that are left."""
        counts, pending = self._counted
        if pending:
            counts = self._subtract(counts, np.concatenate(pending))
            self._counted = counts, ()
        return counts
