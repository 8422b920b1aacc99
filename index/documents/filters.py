"""Filters: a typed tree over declared fields, parsed from JSON and checked.

`{"and": [F, …]}`, `{"or": [F, …]}`, `{"not": F}`, `{"eq": {"field": value}}`,
`{"in": {"field": [value, …]}}`, `{"gte" | "gt" | "lte" | "lt": {"field": value}}`, `{"exists": "field"}`.
A keyword field with several values matches where any of them does; strings compare by their UTF-8 bytes in
Unicode's form NFC.
A document without a value matches no comparison, and so matches its `not`. Numbers are those that fields hold
(`tercet.index.documents.numbers`); with an integer field a fraction is compared as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from tercet.index.documents.datetimes import microseconds_of
from tercet.index.documents.declared import undeclared
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.numbers import comparable_integer, exact_number, require_json_integer
from tercet.index.errors import InvalidQueryError
from tercet.index.wording import shown

MAX_DEPTH = 16
MAX_CONDITIONS = 1000
MAX_VALUES = 10_000

Value = str | int | float | bool
Item = TypeVar("Item")
Comparison = Literal["gte", "gt", "lte", "lt"]
COMPARISONS: tuple[Comparison, ...] = get_args(Comparison)
_TYPES: dict[FieldType, tuple[type, ...]] = {
    "keyword": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "datetime": (str,),
}
_WANTED: dict[FieldType, str] = {
    "keyword": 'text, as "en"',
    "integer": "a number",
    "number": "a number",
    "boolean": "true or false",
    "datetime": 'text, as "2026-01-31"',
}
_CHECKS: dict[FieldType, Callable[[Any], object]] = {
    "integer": comparable_integer,
    "number": exact_number,
    "datetime": microseconds_of,
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


def tree_of(filter: Filter) -> dict[str, Any]:
    """The JSON value of which `parse_filter` makes this filter."""
    if isinstance(filter, And | Or):
        return {"and" if isinstance(filter, And) else "or": [tree_of(part) for part in filter.parts]}
    if isinstance(filter, Not):
        return {"not": tree_of(filter.part)}
    if isinstance(filter, Exists):
        return {"exists": filter.field}
    if isinstance(filter, In):
        if len(filter.values) == 1:  # which counts no values
            return {"eq": {filter.field: filter.values[0]}}
        return {"in": {filter.field: list(filter.values)}}
    return {filter.comparison: {filter.field: filter.limit}}


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
                f"filter {operation[:40]!r} is unknown; use and, or, not, eq, in, gte, gt, lte, lt or "
                'exists, as {"eq": {"lang": "en"}}'
            )
        field, value = _only_entry(operand, f"filter {operation!r}")
        if operation == "in":
            if not isinstance(value, list):
                raise InvalidQueryError("filter 'in' takes a list of values for the field")
            self._values += len(value)
            if self._values > MAX_VALUES:
                raise InvalidQueryError(f"filter has more than {MAX_VALUES} values; send fewer")
            for member in _decisive(value):
                _require_scalar(member)
            return In(field, tuple(value))
        if operation == "eq":
            return In(field, (_require_scalar(value),))
        comparison: Comparison = next(name for name in COMPARISONS if name == operation)
        return Range(field, comparison, _require_scalar(value))


def _only_entry(value: object, what: str) -> tuple[str, object]:
    if not isinstance(value, Mapping) or len(value) != 1:
        raise InvalidQueryError(f"{what} is an object with exactly one key")
    key, inner = next(iter(value.items()))
    if not isinstance(key, str):
        raise InvalidQueryError(f"{what} has the key {shown(key)}; use a string")
    return key, inner


def _decisive(values: Sequence[Item]) -> Sequence[Item]:
    """Those among values for which a rule of numbers holds if it holds for all."""
    if set(map(type, values)) == {int}:
        return [min(values), max(values)]  # type: ignore[type-var]  # integers
    return values


def _require_scalar(value: object) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidQueryError(f"filter value {value} is not finite; use finite numbers")
    if isinstance(value, int):
        try:
            require_json_integer(value)
        except ValueError as error:
            raise InvalidQueryError(f"a filter compares with what no field holds: {error}") from error
    if isinstance(value, str | int | float):
        return value
    if value is None:
        raise InvalidQueryError(
            'a filter value is null; for documents without one: {"not": {"exists": "field"}}'
        )
    kind = "a list" if isinstance(value, list) else "an object"
    raise InvalidQueryError(f"a filter value is {kind}; use a string, number or boolean")


def check_filter(node: Filter, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError where a field is not declared or a value has another type than it."""
    if isinstance(node, And | Or):
        for part in node.parts:
            check_filter(part, fields)
    elif isinstance(node, Not):
        check_filter(node.part, fields)
    elif node.field not in fields:
        raise InvalidQueryError(f"filter field {undeclared(node.field, fields)}")
    elif isinstance(node, In):
        _check_values(node.field, fields[node.field], node.values)
    elif isinstance(node, Range):
        if fields[node.field] == "boolean":
            raise InvalidQueryError(f"field {node.field!r} is boolean, so it has no order; use eq")
        _check_values(node.field, fields[node.field], [node.limit])


def _check_values(field: str, kind: FieldType, values: Sequence[Value]) -> None:
    others = set(map(type, values)).difference(_TYPES[kind])
    if others:
        value = next(value for value in values if type(value) in others)
        raise InvalidQueryError(
            f"field {field!r} is {kind}, but the filter compares it with {shown(value)}; give {_WANTED[kind]}"
        )
    check = _CHECKS.get(kind)
    if check is None:
        return
    for value in _decisive(values):
        try:
            check(value)
        except ValueError as error:
            reason = f"{shown(value)}: {error}" if isinstance(value, str) else str(error)
            raise InvalidQueryError(
                f"field {field!r} is {kind}, but the filter compares it with {reason}"
            ) from error
