"""The values of a scalar field in order, and the row of each: what ranges are looked up in.

The arrays of a segment, whose names begin with the field's, are `_sorted.npy` int64[M] or float64[M], all M
values of its documents, ascending, and `_order.npy` int32[M], the rows of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.documents.fields import ScalarColumn
from tercet.index.documents.intervals import Intervals, counted
from tercet.index.files.arrays import ArraySource, ArrayTarget, open_rows
from tercet.models.representations import Int32, Int64


@dataclass(frozen=True, slots=True)
class SortedValues:
    """values: int64[M] or float64[M], ascending; rows: int32[M]."""

    values: npt.NDArray[Any]
    rows: Int32

    @staticmethod
    def of(column: ScalarColumn) -> SortedValues:
        """Of a column of numbers."""
        rows = np.flatnonzero(column.present)
        values = column.values[rows]
        if column.further is not None:
            rows = np.concatenate([rows, column.further.rows])
            values = np.concatenate([values, column.further.values])
        order = np.argsort(values, kind="stable")
        return SortedValues(values[order], rows[order].astype(np.int32))

    @staticmethod
    def open(arrays: ArraySource, stem: str, dtype: npt.DTypeLike, documents: int) -> SortedValues:
        """Opens those of so many documents. Raises DamagedIndexError naming the file."""
        rows = open_rows(arrays, f"{stem}_order", documents, dtype=np.int32)
        return SortedValues(arrays.open(f"{stem}_sorted", dtype, rows=len(rows)), rows)

    def write(self, arrays: ArrayTarget, stem: str) -> None:
        arrays.write(f"{stem}_sorted", self.values)
        arrays.write(f"{stem}_order", self.rows)

    def same(self, other: object) -> bool:
        """Whether these are the same values and rows."""
        return (
            isinstance(other, SortedValues)
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.rows, other.rows)
        )

    def ranges(self, wanted: Intervals) -> tuple[Int64, Int64]:
        """Where values of the intervals begin and end: int64[K] each, ascending and apart."""
        lows, highs = wanted.lows, wanted.highs
        if not len(self.values):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        near = slice(
            int(np.searchsorted(highs, self.values[0])), int(np.searchsorted(lows, self.values[-1], "right"))
        )
        lows, highs = lows[near], highs[near]
        if len(lows) > len(self.values):  # the fewer are sought among the more
            within = Intervals(lows, highs).hold(self.values)
            edges = np.flatnonzero(np.diff(np.concatenate([[False], within, [False]]).astype(np.int8)))
            return edges[0::2], edges[1::2]
        starts, stops = np.searchsorted(self.values, lows), np.searchsorted(self.values, highs, "right")
        some = starts < stops
        return starts[some], stops[some]

    def taken(self, starts: Int64, stops: Int64) -> Int32:
        """The rows at these places, in order of their values; one of several values maybe repeated."""
        if len(starts) == 1:
            return self.rows[int(starts[0]) : int(stops[0])]
        return self.rows[counted(starts, stops)]
