"""Documents in order of a declared field, some at a time.

Documents of equal values are in order of their ids, then of their collections, and those without a value come
last. Of several values the least counts, or the greatest in descending order. Each page looks at all values
of the field, about 10 ms for a million documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tercet.index.documents.conditions import Condition
from tercet.index.documents.declared import undeclared
from tercet.index.documents.fields import Column, KeywordColumn
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.files.packed_bytes import first_not_below
from tercet.index.reading.pages import rows_from, starts_behind
from tercet.index.segments.segment import Segment
from tercet.models.representations import Bool, Int64

Value = bytes | int | float
Keys = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Order:
    """By which field documents are listed."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document is in an order: its value, None where it has none, its id, and where several
    collections are listed as one, that of the document.
    """

    value: Value | None
    id: bytes
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class PlacedDocument:
    """A document of a snapshot, and where it is in the order. segment, row: of the snapshot."""

    at: Place
    segment: int
    row: int


def check_order(order: Order, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError where the field is not declared."""
    if order.field not in fields:
        raise InvalidQueryError(f"order_by field {undeclared(order.field, fields)}")


def ordered_page(
    segments: Sequence[Segment],
    order: Order,
    after: Place | None,
    limit: int,
    condition: Condition | None,
    collections: Sequence[str] | None = None,
) -> list[PlacedDocument]:
    """The first `limit` documents that follow a place in the order, of those that a condition allows.

    collections: of the segments, in order, where they are of several.
    """
    page: list[PlacedDocument] = []
    id, collection = (None, None) if after is None else (after.id, after.collection)
    starts = starts_behind(id, collection, len(segments), collections)
    names: Sequence[str | None] = [None] * len(segments) if collections is None else collections
    sides = [
        _Side(ordinal, segment, order, condition, starts[ordinal], names[ordinal])
        for ordinal, segment in enumerate(segments)
    ]
    if after is None or after.value is not None:
        for side in sides:
            page += side.with_values(after, limit)
        page.sort(key=lambda placed: placed.at.id)
        page.sort(key=_value_of, reverse=order.descending)  # a stable sort
    if len(page) < limit:
        begun = after is not None and after.value is None
        without = [placed for side in sides for placed in side.without_value(limit - len(page), begun=begun)]
        page += sorted(without, key=lambda placed: placed.at.id)
    return page[:limit]


class _Side:
    """The documents of one segment. keys: [N], ascending in the order; present: bool[N], which have one.

    start: the least id that follows among documents of an equal value.
    """

    def __init__(
        self,
        ordinal: int,
        segment: Segment,
        order: Order,
        condition: Condition | None,
        start: bytes,
        collection: str | None,
    ) -> None:
        self._ordinal = ordinal
        self._start = start
        self._collection = collection
        self._segment = segment
        self._descending = order.descending
        self._column = segment.columns[order.field]
        keys, self._present = _keys(self._column, len(segment), descending=order.descending)
        self._keys = _reversed(keys) if order.descending else keys
        allowed = segment.allowed(condition)
        everything = np.arange(len(segment))
        self._allowed: Bool = np.ones(len(segment), np.bool_) if allowed is None else allowed.has(everything)

    def with_values(self, after: Place | None, limit: int) -> list[PlacedDocument]:
        """The first `limit` that follow, in any order."""
        wanted = self._allowed & self._present
        rows = np.empty(0, np.int64)
        if after is not None and after.value is not None:
            key, exact = self._key_of(after.value)
            if exact:
                rows = self._in_order_of_ids(wanted & (self._keys == key), self._start, limit)
            wanted &= self._keys > key
        rows = np.concatenate([rows, self._first(wanted, limit - len(rows))])
        return list(self._placed(rows))

    def without_value(self, limit: int, *, begun: bool) -> list[PlacedDocument]:
        """The first `limit` without a value; begun: those whose ids follow."""
        least = self._start if begun else b""
        rows = self._in_order_of_ids(self._allowed & ~self._present, least, limit)
        ids = self._segment.documents.ids.take(rows)
        return [
            PlacedDocument(Place(None, id, self._collection), self._ordinal, row)
            for id, row in zip(ids, rows.tolist(), strict=True)
        ]

    def _first(self, wanted: Bool, limit: int) -> Int64:
        """The rows of the least keys, of equal ones those of the least ids."""
        rows: Int64 = np.flatnonzero(wanted)
        if len(rows) <= limit:
            return rows
        if limit <= 0:
            return rows[:0]
        largest = np.partition(self._keys[rows], limit - 1)[limit - 1]
        below = rows[self._keys[rows] < largest]
        equal = self._in_order_of_ids(wanted & (self._keys == largest), b"", limit - len(below))
        return np.concatenate([below, equal])

    def _in_order_of_ids(self, wanted: Bool, least: bytes, limit: int) -> Int64:
        rows = rows_from(self._segment.documents, least)
        return np.asarray(rows[wanted[rows]][:limit])

    def _key_of(self, value: Value) -> tuple[Any, bool]:
        """A key, and whether it is the value's own; else the last before it in the order."""
        if isinstance(self._column, KeywordColumn):
            assert isinstance(value, bytes)  # noqa: S101 - of a field of this type
            strings = self._column.strings
            code = first_not_below(len(strings), strings.__getitem__, value)
            exact = code < len(strings) and strings[code] == value
            if self._descending:
                return ~code, exact
            return (code if exact else code - 1), exact
        key = self._column.values.dtype.type(value)
        key = key.astype(np.int64) if key.dtype == np.bool_ else key
        return (_reversed(key) if self._descending else key), True

    def _placed(self, rows: Int64) -> Iterator[PlacedDocument]:
        keys = _reversed(self._keys[rows]) if self._descending else self._keys[rows]
        values: list[Value] = keys.tolist()
        if isinstance(self._column, KeywordColumn):
            strings = self._column.strings.take(keys)
            for string in strings:
                self._column.text(string)  # what is none shall not go on
            values = list(strings)
        ids = self._segment.documents.ids.take(rows)
        for value, id, row in zip(values, ids, rows.tolist(), strict=True):
            yield PlacedDocument(Place(value, id, self._collection), self._ordinal, row)


def _value_of(placed: PlacedDocument) -> Any:
    return placed.at.value


def _keys(column: Column, documents: int, *, descending: bool) -> tuple[Keys, Bool]:
    """What stands for each document's value, in their order: for keywords an index in the strings."""
    if not isinstance(column, KeywordColumn):
        values = column.values.astype(np.int64) if column.values.dtype == np.bool_ else column.values
        if column.further is not None:
            values = values.copy()
            chosen_at = np.maximum.at if descending else np.minimum.at
            chosen_at(values, column.further.rows, column.further.values)
        return values, column.present
    keys, present = np.zeros(documents, np.int64), np.zeros(documents, np.bool_)
    if len(column.rows):
        first = np.flatnonzero(np.diff(column.rows, prepend=-1))
        chosen = np.maximum if descending else np.minimum
        rows = column.rows[first]
        keys[rows], present[rows] = chosen.reduceat(column.codes, first), True
    return keys, present


def _reversed(keys: Any) -> Any:
    """Keys in the opposite order; of integers without an overflow."""
    return -keys if np.issubdtype(keys.dtype, np.floating) else ~keys
