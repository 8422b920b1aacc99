"""Haystack's filters: those over declared fields for the server, the others for here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, cast

from haystack import Document
from haystack.errors import FilterError
from tercet_client.types import Filter

RANGES = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
EQUALITIES = {"==", "!=", "in", "not in"}
LOGIC = {"AND", "OR", "NOT"}
ATTRIBUTES = {field.name for field in fields(Document)}


@dataclass(frozen=True, slots=True)
class Split:
    """A filter as two, both of which must match. server: Tercet's; here: Haystack's; None for none."""

    server: Filter | None
    here: dict[str, Any] | None


def split(filters: Mapping[str, Any] | None, declared: Collection[str]) -> Split:
    """The conditions on declared fields for the server, and what has others for here.

    Raises FilterError where it is malformed.
    """
    if not filters:
        return Split(None, None)
    checked = _checked(filters)
    if _undeclared(checked, declared) is None:
        return Split(_translated(checked), None)
    if checked["operator"] != "AND":
        return Split(None, checked)
    server = [part for part in checked["conditions"] if _undeclared(part, declared) is None]
    here = [part for part in checked["conditions"] if _undeclared(part, declared) is not None]
    return Split(
        cast(Filter, {"and": [_translated(part) for part in server]}) if server else None,
        {"operator": "AND", "conditions": here},
    )


def whole(filters: Mapping[str, Any] | None, declared: Collection[str]) -> Filter | None:
    """A filter for a search, all of which the server must know. Raises FilterError."""
    if not filters:
        return None
    checked = _checked(filters)
    other = _undeclared(checked, declared)
    if other is not None:
        known = ", ".join(sorted(declared)) or "none"
        raise FilterError(
            f"a search cannot filter by {other!r}; declared fields of the collection: {known}. Name those of "
            "meta in settings={'fields': {…}} when the store makes its collection"
        )
    return _translated(checked)


def _checked(condition: object) -> dict[str, Any]:
    """The condition, if it and all below it are well formed."""
    if not isinstance(condition, dict):
        raise FilterError(f"a filter is an object, not {condition!r}")
    if "field" in condition:
        for key in ("operator", "value"):
            if key not in condition:
                raise FilterError(f"{key!r} is missing in {condition}")
        operator, value = condition["operator"], condition["value"]
        if operator not in RANGES and operator not in EQUALITIES:
            known = ", ".join(sorted(EQUALITIES | set(RANGES)))
            raise FilterError(f"unknown operator {operator!r}; there are {known}")
        if operator in ("in", "not in") and not isinstance(value, list):
            raise FilterError(f"{operator!r} takes a list, not {value!r}")
        if operator in RANGES and isinstance(value, list):
            raise FilterError(f"{operator!r} takes one value, not {value!r}")
        return condition
    for key in ("operator", "conditions"):
        if key not in condition:
            raise FilterError(f"{key!r} is missing in {condition}")
    if condition["operator"] not in LOGIC:
        raise FilterError(f"unknown operator {condition['operator']!r}; there are AND, OR, NOT")
    if not isinstance(condition["conditions"], list) or not condition["conditions"]:
        raise FilterError(f"'conditions' is a list of at least one filter, not {condition['conditions']!r}")
    for part in condition["conditions"]:
        _checked(part)
    return condition


def _undeclared(condition: Mapping[str, Any], declared: Collection[str]) -> str | None:
    """A field that the server does not know, if there is one."""
    if "field" in condition:
        name = str(condition["field"])
        return None if name not in ATTRIBUTES and name.removeprefix("meta.") in declared else name
    return next(filter(None, (_undeclared(part, declared) for part in condition["conditions"])), None)


def _translated(condition: Mapping[str, Any]) -> Filter:
    if "field" not in condition:
        parts = [_translated(part) for part in condition["conditions"]]
        if condition["operator"] == "NOT":
            return cast(Filter, {"not": {"and": parts}})
        return cast(Filter, {condition["operator"].lower(): parts})
    field, operator = condition["field"].removeprefix("meta."), condition["operator"]
    if operator in RANGES:
        return _range(field, RANGES[operator], condition["value"])
    equal = _one_of(field, condition["value"] if operator in ("in", "not in") else [condition["value"]])
    return equal if operator in ("==", "in") else cast(Filter, {"not": equal})


def _range(field: str, comparison: str, value: Any) -> Filter:
    """Nothing is above or below None."""
    return cast(Filter, {"in": {field: []}} if value is None else {comparison: {field: value}})


def _one_of(field: str, values: list[Any]) -> Filter:
    """None among the values stands for documents that have none."""
    given = [value for value in values if value is not None]
    if len(given) == len(values):
        return cast(Filter, {"in": {field: given}})
    absent = {"not": {"exists": field}}
    return cast(Filter, {"or": [{"in": {field: given}}, absent]} if given else absent)
