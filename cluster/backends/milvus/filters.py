"""Conditions in Milvus's language, over the JSON of a document's metadata.

What Milvus says of a key that is missing, of a list and of their negation differs from here, and between its
releases. So what it is given says only what documents have, and allows more where that is not enough: of
what must not hold nothing is said, and a list passes where its members would have to be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.cluster.backends.records import strings_of
from tercet.index.documents.conditions import AllOf, AnyOf, Between, Condition, Except, OneOf, Present, Within
from tercet.index.documents.metadata import FieldType

EVERYTHING = 'id != ""'
NOTHING = 'id == ""'
MOST_VALUES = 100  # of a condition that is written out


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A condition there. exact: whether it allows no others."""

    expression: str
    exact: bool


def narrowed(condition: Condition) -> Narrowed:
    """A condition over declared fields."""
    if isinstance(condition, AllOf | AnyOf):
        parts = [narrowed(part) for part in condition.parts]
        texts, exact = [part.expression for part in parts], all(part.exact for part in parts)
        return Narrowed(_all(texts) if isinstance(condition, AllOf) else _any(texts), exact)
    if isinstance(condition, Except):
        return Narrowed(EVERYTHING, exact=False)
    if "." in condition.field:  # a path, perhaps
        return Narrowed(EVERYTHING, exact=False)
    field = f"metadata[{literal(condition.field)}]"
    wider = Narrowed(f"exists {field}", exact=False)  # also an empty list
    if isinstance(condition, Present | Between):
        return wider
    if isinstance(condition, OneOf):
        return _one_of(field, condition) or wider
    return _within(field, condition) or wider


def literal(text: str) -> str:
    """A string as expressions write it."""
    for character, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
        text = text.replace(character, written)
    return f'"{text}"'


def _one_of(field: str, condition: OneOf) -> Narrowed | None:
    values = [literal(string) for string in strings_of(condition)]
    if len(values) > MOST_VALUES:
        return None
    if not values:
        return Narrowed(NOTHING, exact=True)
    members = f"json_contains_any({field}, [{', '.join(values)}])"
    return Narrowed(_any([*(f"{field} == {value}" for value in values), members]), exact=True)


def _within(field: str, condition: Within) -> Narrowed | None:
    intervals = condition.intervals
    if len(intervals) > MOST_VALUES:
        return None
    if condition.kind == "boolean":
        held = [value for value in (False, True) if intervals.hold(np.array([value]))[0]]
        return Narrowed(_any([f"{field} == {str(value).lower()}" for value in held]), exact=True)
    if condition.kind == "datetime":  # strings of several forms
        return None
    pairs = zip(intervals.lows.tolist(), intervals.highs.tolist(), strict=True)
    ranges = [_interval(field, condition.kind, low, high) for low, high in pairs]
    return Narrowed(_any([*ranges, f"exists {field}[0]"]), exact=False)


def _interval(field: str, kind: FieldType, low: int | float, high: int | float) -> str:
    least, most = (-(2**63), 2**63 - 1) if kind == "integer" else (-np.inf, np.inf)
    limits = [f"{field} >= {low!r}"] if low > least else []
    limits += [f"{field} <= {high!r}"] if high < most else []
    return _all(limits) if limits else f"exists {field}"


def _all(parts: Sequence[str]) -> str:
    return f"({' and '.join(parts)})" if parts else EVERYTHING


def _any(parts: Sequence[str]) -> str:
    return f"({' or '.join(parts)})" if parts else NOTHING
