"""The rows of a segment that a condition allows.

They are looked up, not searched for: strings and numbers in order, rows in postings. Of parts that must all
match the one that allows fewest goes first, and the others are asked about what it left, if anything.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial

import numpy as np
from pyroaring import AbstractBitMap, BitMap

from tercet.index.documents.bitmaps import NOTHING, bitmap_of, bitmap_of_ascending, bitmap_of_mask
from tercet.index.documents.conditions import (
    AllOf,
    AnyOf,
    Between,
    Condition,
    Except,
    OneOf,
    Present,
    Within,
    in_common,
    joined_by_field,
)
from tercet.index.documents.field_indexes import FieldIndexes
from tercet.index.documents.fields import Column, KeywordColumn, ScalarColumn
from tercet.index.documents.row_set import RowSet
from tercet.index.files.packed_bytes import common_strings, first_not_below
from tercet.models.representations import Int64

# A range that more than one in so many documents lies within is compared with the values of all: that is
# faster than to bring its rows into order.
SCANNED_SHARE = 32
CACHED_BYTES = 2  # for each document: as much as 16 conditions that many documents match
CACHED_LEAST = 4_096
ENTRY_BYTES = 300  # of a condition's key, and of what holds its rows

Ranges = tuple[Int64, Int64]
"""Where the ranges that a condition allows begin and end, int64[K] each, ascending: among the strings
of a keyword, or among the values of another field in order."""


class Matching:
    """The rows of N documents that conditions allow, of which it remembers the last ones within bounds."""

    def __init__(self, columns: Mapping[str, Column], indexes: FieldIndexes, documents: int) -> None:
        self._columns = columns
        self._indexes = indexes
        self._documents = documents
        self._known: OrderedDict[bytes, RowSet] = OrderedDict()
        self._known_bytes = 0
        self._changing = threading.Lock()

    def rows(self, condition: Condition) -> RowSet:
        """Of all documents, deleted ones too. Raises DamagedIndexError where postings cannot be read."""
        with self._changing:
            known = self._known.get(condition.key)
            if known is not None:
                self._known.move_to_end(condition.key)
                return known
        evaluation = _Evaluation(self._columns, self._indexes, self._documents)
        rows = RowSet.of_bitmap(evaluation.rows(condition, None), self._documents)
        self._remember(condition.key, rows)
        return rows

    def _remember(self, key: bytes, rows: RowSet) -> None:
        allowed = max(CACHED_LEAST, CACHED_BYTES * self._documents)
        with self._changing:
            if key not in self._known:
                self._known[key] = rows
                self._known_bytes += rows.nbytes + ENTRY_BYTES
            while self._known_bytes > allowed:
                _, oldest = self._known.popitem(last=False)
                self._known_bytes -= oldest.nbytes + ENTRY_BYTES


class _Evaluation:
    """One condition over one segment; what its parts look up is looked up once."""

    def __init__(self, columns: Mapping[str, Column], indexes: FieldIndexes, documents: int) -> None:
        self._columns = columns
        self._indexes = indexes
        self._documents = documents
        self._ranges: dict[bytes, Ranges] = {}

    def rows(self, condition: Condition, among: AbstractBitMap | None) -> AbstractBitMap:
        """Those that it allows, of some or, for None, of all."""
        if isinstance(condition, AllOf):
            for part in sorted(self._parts(condition), key=self.estimate):
                among = self.rows(part, among)
                if not among:
                    return NOTHING
            return self._all() if among is None else among
        if isinstance(condition, AnyOf):
            bitmaps = [self.rows(part, among) for part in condition.parts]
            return BitMap.union(*bitmaps) if bitmaps else NOTHING
        if isinstance(condition, Except):
            everything = self._all() if among is None else among
            return everything - self.rows(condition.part, among)
        if (
            isinstance(condition, Within)
            and among is not None
            and not self._several(condition.field)
            and len(among) < self.estimate(condition)
        ):
            return self._compared(condition, among)
        alone = self._alone(condition)
        return alone if among is None else among & alone

    def estimate(self, condition: Condition) -> int:
        """About how many documents it allows: at most so many, but for what an `Except` does not exclude."""
        if isinstance(condition, AllOf):
            return min(map(self.estimate, self._parts(condition)), default=self._documents)
        if isinstance(condition, AnyOf):
            return min(self._documents, sum(self.estimate(part) for part in condition.parts))
        if isinstance(condition, Except):
            return self._documents - self.estimate(condition.part)
        if isinstance(condition, Present):
            return self._documents
        starts, stops = self._ranges_of(condition)
        postings = self._indexes.postings(condition.field)
        if postings is not None:
            return min(self._documents, postings.count(starts, stops))
        return int((stops - starts).sum())

    def _parts(self, condition: AllOf) -> list[Condition]:
        """Its parts, of which those on a field of one value for each document are one."""
        return joined_by_field(condition.parts, Within, in_common, lambda field: not self._several(field))

    def _several(self, field: str) -> bool:
        """Whether documents have several values of a scalar field."""
        column = self._columns[field]
        return isinstance(column, ScalarColumn) and column.further is not None

    def _all(self) -> AbstractBitMap:
        everything = BitMap()
        everything.add_range(0, self._documents)
        return everything

    def _alone(self, condition: OneOf | Between | Within | Present) -> AbstractBitMap:
        column = self._columns[condition.field]
        if isinstance(condition, Present):
            if isinstance(column, KeywordColumn):
                return bitmap_of(column.rows, self._documents)
            return bitmap_of_mask(column.present)
        starts, stops = self._ranges_of(condition)
        if not len(starts):
            return NOTHING
        postings = self._indexes.postings(condition.field)
        if postings is not None:
            return postings.rows(starts, stops)
        many = int((stops - starts).sum()) * SCANNED_SHARE > self._documents
        if many and isinstance(condition, Within) and len(condition.intervals) == 1:
            assert isinstance(column, ScalarColumn)  # noqa: S101 - as all fields with intervals
            inside = condition.intervals.hold(column.values) & column.present
            if column.further is not None:
                inside[column.further.rows[condition.intervals.hold(column.further.values)]] = True
            return bitmap_of_mask(inside)
        return bitmap_of(self._indexes.sorted_values(condition.field).taken(starts, stops), self._documents)

    def _compared(self, condition: Within, among: AbstractBitMap) -> AbstractBitMap:
        """Of a few rows of one value each those whose values lie within the intervals."""
        column = self._columns[condition.field]
        assert isinstance(column, ScalarColumn)  # noqa: S101 - as all fields with intervals
        rows = np.frombuffer(among.to_array(), np.uint32)
        inside = condition.intervals.hold(column.values[rows]) & column.present[rows]
        return bitmap_of_ascending(rows[inside])

    def _ranges_of(self, condition: OneOf | Between | Within) -> Ranges:
        known = self._ranges.get(condition.key)
        if known is None:
            known = self._ranges[condition.key] = self._look_up(condition)
        return known

    def _look_up(self, condition: OneOf | Between | Within) -> Ranges:
        if isinstance(condition, Within):
            if condition.kind == "boolean":
                return condition.intervals.lows, condition.intervals.highs + 1
            return self._indexes.sorted_values(condition.field).ranges(condition.intervals)
        column = self._columns[condition.field]
        assert isinstance(column, KeywordColumn)  # noqa: S101 - as all fields with strings
        if isinstance(condition, OneOf):
            numbers = common_strings(column.strings, condition.strings)
            return numbers, numbers + 1
        first_from = partial(first_not_below, len(column.strings), column.strings.__getitem__)
        low = first_from(condition.low)
        high = len(column.strings) if condition.high is None else first_from(condition.high)
        some = slice(0, int(low < high))
        return np.array([low])[some], np.array([high])[some]
