"""Sets of numbers as closed intervals: lows and highs, int64[K] or float64[K] both, ascending and apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.models.representations import Int64, offsets_of

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """The numbers from each low to its high; no interval touches the next one."""

    lows: Numbers
    highs: Numbers

    def __len__(self) -> int:
        return len(self.lows)

    @staticmethod
    def of(values: Numbers) -> Intervals:
        """These numbers, in any order, maybe repeated."""
        distinct = np.unique(values)
        return _joined(distinct, distinct)

    @staticmethod
    def union(parts: Sequence[Intervals]) -> Intervals:
        """What is in any of them; at least one is given."""
        lows = np.concatenate([part.lows for part in parts])
        order = np.argsort(lows, kind="stable")
        return _joined(lows[order], np.concatenate([part.highs for part in parts])[order])

    def intersection(self, other: Intervals) -> Intervals:
        """What is in both."""
        starts = np.searchsorted(other.highs, self.lows)
        lengths = np.maximum(np.searchsorted(other.lows, self.highs, "right") - starts, 0)
        own = np.repeat(np.arange(len(self)), lengths)
        others = counted(starts, starts + lengths)
        return Intervals(
            np.maximum(self.lows[own], other.lows[others]), np.minimum(self.highs[own], other.highs[others])
        )

    def hold(self, values: Numbers) -> npt.NDArray[np.bool_]:
        """Of values [M] each, whether it is in the set: bool[M]."""
        if len(self) == 1:
            within: npt.NDArray[np.bool_] = (values >= self.lows[0]) & (values <= self.highs[0])
            return within
        interval = np.searchsorted(self.lows, values, "right") - 1
        inside: npt.NDArray[np.bool_] = (interval >= 0) & (self.highs[interval] >= values)
        return inside


def counted(starts: Int64, stops: Int64) -> Int64:
    """The whole numbers from each start, int64[K], up to its stop, one after another."""
    lengths = stops - starts
    return np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())


def _joined(lows: Numbers, highs: Numbers) -> Intervals:
    """Intervals by ascending low, of which those that overlap or touch become one."""
    ends = np.maximum.accumulate(highs)
    if lows.dtype == np.int64:  # a low above a former end is not the least number, so 1 less is there
        apart = (lows[1:] > ends[:-1]) & (lows[1:] - 1 > ends[:-1])
    else:
        with np.errstate(over="ignore"):  # what follows the greatest number is infinite
            apart = lows[1:] > np.nextafter(ends[:-1], np.inf)
    first = np.concatenate([[True], apart])[: len(lows)]
    last = np.concatenate([apart, [True]])[: len(lows)]
    return Intervals(lows[first], ends[last])
