"""Filters: a typed tree over declared fields, parsed from JSON and evaluated to one bool per document.

`{"and": [F, …]}`, `{"or": [F, …]}`, `{"not": F}`, `{"eq": {"field": value}}`,
`{"in": {"field": [value, …]}}`, `{"gte" | "gt" | "lte" | "lt": {"field": value}}`, `{"exists": "field"}`.
A keyword field with several values matches where any of them does; strings compare by their UTF-8 bytes.
A document without a value matches no comparison, and so matches its `not`.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from index.documents.fields import INT64_LIMIT, Column, FieldType, KeywordColumn, ScalarColumn
from index.errors import InvalidQueryError
from index.files.packed_bytes import first_not_below
from models.representations import Bool

MAX_DEPTH = 16
MAX_CONDITIONS = 1000
MAX_VALUES = 10_000
LARGEST_NUMBER = sys.float_info.max

Value = str | int | float | bool
Comparison = Literal["gte", "gt", "lte", "lt"]
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
_COMPARE: dict[Comparison, Callable[[Any, Any], Any]] = {
    "gte": operator.ge,
    "gt": operator.gt,
    "lte": operator.le,
    "lt": operator.lt,
}


@dataclass(frozen=True, slots=True)
class And:
    """Matches where every part does."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Matches where any part does."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Matches where the part does not."""

    part: Filter


@dataclass(frozen=True, slots=True)
class In:
    """Matches where the field has one of the values; `eq` is one value."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Matches where the field has a value on the given side of the limit."""

    field: str
    comparison: Comparison
    limit: Value


@dataclass(frozen=True, slots=True)
class Exists:
    """Matches where the field has a value."""

    field: str


Filter = And | Or | Not | In | Range | Exists


def parse_filter(value: object) -> Filter:
    """The filter that a JSON value describes.

    Raises InvalidQueryError where it is no filter, nests deeper than 16, or has more than 1,000
    conditions or 10,000 values.
    """
    return _Parser().parse(value, 1)


class _Parser:
    """Counts conditions and values over the whole tree while parsing."""

    def __init__(self) -> None:
        self._conditions = 0
        self._values = 0

    def parse(self, value: object, depth: int) -> Filter:
        self._conditions += 1
        if depth > MAX_DEPTH:
            raise InvalidQueryError(f"filter nests deeper than {MAX_DEPTH}; flatten it")
        if self._conditions > MAX_CONDITIONS:
            raise InvalidQueryError(
                f"filter has more than {MAX_CONDITIONS} conditions; use in for many values"
            )
        operation, operand = _only_entry(value, "a filter")
        if operation in ("and", "or"):
            if not isinstance(operand, list) or not operand:
                raise InvalidQueryError(f"filter {operation!r} takes a list of at least one filter")
            parts = tuple(self.parse(part, depth + 1) for part in operand)
            return And(parts) if operation == "and" else Or(parts)
        if operation == "not":
            return Not(self.parse(operand, depth + 1))
        if operation == "exists":
            if not isinstance(operand, str):
                raise InvalidQueryError("filter 'exists' takes a field's name")
            return Exists(operand)
        return self._parse_condition(operation, operand)

    def _parse_condition(self, operation: str, operand: object) -> Filter:
        if operation not in ("eq", "in", *COMPARISONS):
            raise InvalidQueryError(
                f"filter {operation[:40]!r} is unknown; use and, or, not, eq, in, gte, gt, lte, lt or exists"
            )
        field, value = _only_entry(operand, f"filter {operation!r}")
        if operation == "in":
            if not isinstance(value, list):
                raise InvalidQueryError("filter 'in' takes a list of values for the field")
            self._values += len(value)
            if self._values > MAX_VALUES:
                raise InvalidQueryError(f"filter has more than {MAX_VALUES} values; send fewer")
            return In(field, tuple(_scalar(member) for member in value))
        if operation == "eq":
            return In(field, (_scalar(value),))
        comparison: Comparison = next(name for name in COMPARISONS if name == operation)
        return Range(field, comparison, _scalar(value))


def _only_entry(value: object, what: str) -> tuple[str, object]:
    if not isinstance(value, Mapping) or len(value) != 1:
        raise InvalidQueryError(f"{what} is an object with exactly one key")
    key, inner = next(iter(value.items()))
    if not isinstance(key, str):
        raise InvalidQueryError(f"{what} has the key {key!r}; use a string")
    return key, inner


def _scalar(value: object) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidQueryError(f"filter value {value} is not finite; use finite numbers")
    if isinstance(value, str | int | float):
        return value
    raise InvalidQueryError(f"a filter value is {type(value).__name__}; use a string, number or boolean")


def check_filter(node: Filter, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError where a field is not declared or a value has another type than it."""
    if isinstance(node, And | Or):
        for part in node.parts:
            check_filter(part, fields)
    elif isinstance(node, Not):
        check_filter(node.part, fields)
    elif node.field not in fields:
        known = ", ".join(sorted(fields)) or "none"
        raise InvalidQueryError(
            f"filter field {node.field[:80]!r} is not declared in this collection; declared fields: {known}. "
            "Fields are declared when a collection is created (--field NAME:TYPE, or fields in PUT)"
        )
    elif isinstance(node, In):
        for value in node.values:
            _check_value(node.field, fields[node.field], value)
    elif isinstance(node, Range):
        if fields[node.field] == "boolean":
            raise InvalidQueryError(f"field {node.field!r} is boolean, so it has no order; use eq")
        _check_value(node.field, fields[node.field], node.limit)


def _check_value(field: str, kind: FieldType, value: Value) -> None:
    number = not isinstance(value, str | bool)
    fits = {
        "keyword": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": number,
        "number": number,
    }[kind]
    if not fits:
        raise InvalidQueryError(f"field {field!r} is {kind}, but the filter compares it with {value!r:.80}")
    if not isinstance(value, str) and abs(value) > LARGEST_NUMBER:
        raise InvalidQueryError(f"field {field!r} is compared with a number beyond {LARGEST_NUMBER:g}")


def evaluate(node: Filter, columns: Mapping[str, Column], documents: int) -> Bool:
    """Which documents of a segment match a checked filter, bool[N]."""
    if isinstance(node, And | Or):
        combine = np.logical_and if isinstance(node, And) else np.logical_or
        mask = evaluate(node.parts[0], columns, documents)
        for part in node.parts[1:]:  # two masks at a time, however many parts there are
            mask = combine(mask, evaluate(part, columns, documents))
        return mask
    if isinstance(node, Not):
        return np.logical_not(evaluate(node.part, columns, documents))
    column = columns[node.field]
    if isinstance(column, KeywordColumn):
        return _keyword_mask(node, column, documents)
    return column.present & _scalar_mask(node, column)


def _keyword_mask(node: In | Range | Exists, column: KeywordColumn, documents: int) -> Bool:
    wanted = np.zeros(len(column.strings), np.bool_)
    if isinstance(node, Exists):
        wanted[:] = True
    elif isinstance(node, In):
        for value in node.values:
            place = _place(column, value)
            if place < len(column.strings) and column.strings[place] == _encoded(value):
                wanted[place] = True
    else:
        # Places below `start` hold lower strings; "gt" and "lte" count an equal string as low.
        start = _place(column, node.limit)
        if (
            node.comparison in ("gt", "lte")
            and start < len(wanted)
            and column.strings[start] == _encoded(node.limit)
        ):
            start += 1
        if node.comparison in ("gt", "gte"):
            wanted[start:] = True
        else:
            wanted[:start] = True
    mask = np.zeros(documents, np.bool_)
    mask[column.rows[wanted[column.codes]]] = True
    return mask


def _place(column: KeywordColumn, value: Value) -> int:
    return first_not_below(len(column.strings), column.strings.__getitem__, _encoded(value))


def _encoded(value: Value) -> bytes:
    # A lone surrogate equals no stored string, but must compare like any other.
    return str(value).encode(errors="surrogatepass")


def _scalar_mask(node: In | Range | Exists, column: ScalarColumn) -> Bool:
    if isinstance(node, Exists):
        return column.present
    if isinstance(node, In):
        return np.isin(column.values, _members(node.values, column.values.dtype))
    mask: Bool = _COMPARE[node.comparison](column.values, _limit(node, column.values.dtype))
    return mask


def _limit(node: Range, dtype: np.dtype[Any]) -> Value:
    """The limit as a column of this dtype compares with it exactly.

    NumPy would turn 64-bit integers into float64, which rounds them beyond 2^53.
    """
    if dtype == np.int64 and isinstance(node.limit, float):
        return math.floor(node.limit) if node.comparison in ("gt", "lte") else math.ceil(node.limit)
    return node.limit


def _members(values: tuple[Value, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values that a column of this dtype can hold."""
    if dtype == np.int64:
        whole = [int(value) for value in values if value == int(value)]
        return np.array([value for value in whole if -INT64_LIMIT <= value < INT64_LIMIT], np.int64)
    return np.array(values, dtype)
