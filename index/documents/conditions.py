"""Filters in one form each: those that must match the same documents, whatever these are, become the same.

Nested `and`s and `or`s are flat, without repeated parts and in one order; a double `not` is none, and the
`not`s of an `and` become one. What an `or` says of a scalar field is a set of intervals; equalities of
strings are a set of strings. Values are as columns hold them.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TypeVar

import numpy as np

from tercet.index.documents.datetimes import microseconds_of
from tercet.index.documents.fields import composed
from tercet.index.documents.filters import (
    And,
    Comparison,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Range,
    Value,
    check_filter,
)
from tercet.index.documents.intervals import Intervals, Numbers
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.numbers import INT64, exact_number
from tercet.index.files.packed_bytes import PackedBytes

_LARGEST = sys.float_info.max
# The least and the greatest value of a field's type.
_LIMITS: dict[FieldType, tuple[int | float, int | float]] = {
    "integer": INT64,
    "datetime": INT64,
    "boolean": (0, 1),
    "number": (-_LARGEST, _LARGEST),
}


@dataclass(frozen=True, slots=True, eq=False)
class Within:
    """One of a scalar field's values lies in one of the intervals; those of booleans are of 0 and 1."""

    field: str
    kind: FieldType
    intervals: Intervals
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """A keyword field has one of the strings, which ascend."""

    field: str
    strings: PackedBytes
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Between:
    """A keyword field has a string from `low` on and below `high`; None is no limit."""

    field: str
    low: bytes
    high: bytes | None
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Present:
    """A field has a value."""

    field: str
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class AllOf:
    """All parts match; without any it matches every document. One part at most is an `Except`."""

    parts: tuple[Condition, ...]
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class AnyOf:
    """One of the parts matches; without any it matches no document."""

    parts: tuple[Condition, ...]
    key: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Except:
    """The part does not match."""

    part: Condition
    key: bytes


Condition = Within | OneOf | Between | Present | AllOf | AnyOf | Except
"""`key` is the same in equal conditions, and only there."""
Part = TypeVar("Part", Within, OneOf)


def condition_of(filter: Filter, fields: Mapping[str, FieldType]) -> Condition:
    """A checked filter over the declared fields."""
    if isinstance(filter, And):
        return _all_of([condition_of(part, fields) for part in filter.parts])
    if isinstance(filter, Or):
        return _any_of([condition_of(part, fields) for part in filter.parts])
    if isinstance(filter, Not):
        return _except(condition_of(filter.part, fields))
    kind = fields[filter.field]
    if isinstance(filter, Exists):
        return _present(filter.field)
    if kind == "keyword":
        return _of_strings(filter)
    if isinstance(filter, In):
        return _within(filter.field, Intervals.of(_numbers(kind, filter.values)), kind)
    limit = _limit(kind, filter.limit)
    if kind == "number":
        low, high = _float_limits(filter.comparison, exact_number(limit))
    else:
        low, high = _whole_limits(filter.comparison, limit)
    if low > high:
        return NOTHING
    dtype = np.float64 if kind == "number" else np.int64
    return _within(filter.field, Intervals(np.array([low], dtype), np.array([high], dtype)), kind)


def checked_condition(filter: Filter, fields: Mapping[str, FieldType]) -> Condition:
    """The condition of a filter. Raises InvalidQueryError where that does not fit the fields."""
    check_filter(filter, fields)
    return condition_of(filter, fields)


def _key(kind: str, *parts: bytes) -> bytes:
    """Of conditions that have other parts, another one."""
    digest = hashlib.blake2b(digest_size=32)
    for part in (kind.encode(), *parts):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()


def _joined(parts: Iterable[Condition], kind: type[AllOf] | type[AnyOf]) -> Condition:
    """Distinct parts, in order of their keys; one alone is itself."""
    distinct = {part.key: part for part in parts}
    ordered = tuple(distinct[key] for key in sorted(distinct))
    return ordered[0] if len(ordered) == 1 else kind(ordered, _key(kind.__name__, *sorted(distinct)))


NOTHING = _joined([], AnyOf)
EVERYTHING = _joined([], AllOf)


def _flat(parts: Iterable[Condition], kind: type[AllOf] | type[AnyOf]) -> Iterator[Condition]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _all_of(parts: Sequence[Condition]) -> Condition:
    flat = list(_flat(parts, AllOf))
    excluded = [part.part for part in flat if isinstance(part, Except)]
    if len(excluded) > 1:  # what no part excludes is outside the union of what each does
        others = [part for part in flat if not isinstance(part, Except)]
        flat = list(_flat([*others, _except(_any_of(excluded))], AllOf))
    return NOTHING if any(part.key == NOTHING.key for part in flat) else _joined(flat, AllOf)


def _any_of(parts: Sequence[Condition]) -> Condition:
    flat = list(_flat(parts, AnyOf))
    excluded = [part.part for part in flat if isinstance(part, Except)]
    if len(excluded) > 1:
        others = [part for part in flat if not isinstance(part, Except)]
        flat = list(_flat([*others, _except(_all_of(excluded))], AnyOf))
    flat = joined_by_field(joined_by_field(flat, Within, _in_any), OneOf, _one_of_any)
    return EVERYTHING if any(part.key == EVERYTHING.key for part in flat) else _joined(flat, AnyOf)


def _except(part: Condition) -> Condition:
    if isinstance(part, Except):
        return part.part
    if part.key in (NOTHING.key, EVERYTHING.key):
        return EVERYTHING if part.key == NOTHING.key else NOTHING
    return Except(part, _key("Except", part.key))


def joined_by_field(
    parts: Iterable[Condition],
    kind: type[Part],
    join: Callable[[list[Part]], Condition],
    joins: Callable[[str], bool] = lambda field: True,
) -> list[Condition]:
    """The parts, of which those of a kind on one field become one. joins: whether those of a field do."""
    joined: list[Condition] = []
    fields: dict[str, list[Part]] = {}
    for part in parts:
        if isinstance(part, kind) and joins(part.field):
            fields.setdefault(part.field, []).append(part)
        else:
            joined.append(part)
    return [*joined, *(some[0] if len(some) == 1 else join(some) for some in fields.values())]


def _in_any(parts: Sequence[Within]) -> Condition:
    """What one of several conditions on one field comes to."""
    return _within(parts[0].field, Intervals.union([part.intervals for part in parts]), parts[0].kind)


def in_common(parts: Sequence[Within]) -> Condition:
    """What conditions on one field come to where each document has one value at most."""
    common = reduce(Intervals.intersection, [part.intervals for part in parts])
    return _within(parts[0].field, common, parts[0].kind)


def _one_of_any(parts: Sequence[OneOf]) -> Condition:
    strings = (part.strings.take(np.arange(len(part.strings))) for part in parts)
    return _one_of(parts[0].field, set(chain.from_iterable(strings)))


def _present(field: str) -> Condition:
    return Present(field, _key("Present", field.encode()))


def _within(field: str, intervals: Intervals, kind: FieldType) -> Condition:
    if not len(intervals):
        return NOTHING
    if (intervals.lows[0], intervals.highs[0]) == _LIMITS[kind]:
        return _present(field)
    key = _key("Within", field.encode(), intervals.lows.tobytes(), intervals.highs.tobytes())
    return Within(field, kind, intervals, key)


def _one_of(field: str, strings: set[bytes]) -> Condition:
    if not strings:
        return NOTHING
    packed = PackedBytes.of(sorted(strings))
    key = _key("OneOf", field.encode(), packed.offsets.tobytes(), packed.data.tobytes())
    return OneOf(field, packed, key)


def _of_strings(filter: In | Range) -> Condition:
    if isinstance(filter, In):
        # As they are given, too: segments of before keywords were composed may hold other forms.
        forms = [form for value in filter.values for form in (str(value), composed(str(value)))]
        return _one_of(filter.field, set(map(_encoded, forms)))
    limit = _encoded(composed(str(filter.limit)))
    after = limit + b"\0"  # nothing lies between a string and itself with a zero byte behind
    low = {"gte": limit, "gt": after}.get(filter.comparison, b"")
    high = {"lt": limit, "lte": after}.get(filter.comparison)
    if high == b"":
        return NOTHING
    if low == b"" and high is None:
        return _present(filter.field)
    key = _key("Between", filter.field.encode(), low, b"" if high is None else high)
    return Between(filter.field, low, high, key)


def _encoded(value: str) -> bytes:
    # A lone surrogate equals no stored string, but must compare like any other.
    return value.encode("utf-8", "surrogatepass")


def _limit(kind: FieldType, value: Value) -> int | float:
    return microseconds_of(str(value)) if kind == "datetime" else value  # type: ignore[return-value]  # checked


def _numbers(kind: FieldType, values: Sequence[Value]) -> Numbers:
    """The values that a column can hold, as it holds them: int64, or float64 of numbers."""
    limits = [_limit(kind, value) for value in values]
    if kind == "number":  # of the two zeros, which are equal, the positive one
        return np.array([exact_number(value) for value in limits], np.float64) + 0.0
    return np.array([int(value) for value in limits if value == int(value)], np.int64)


def _whole_limits(comparison: Comparison, limit: int | float) -> tuple[int, int]:
    """The least and the greatest of the whole numbers of 64 bits that it allows; the former more: none."""
    least, most = INT64
    if comparison in ("gte", "gt"):
        return math.ceil(limit) if comparison == "gte" else math.floor(limit) + 1, most
    return least, math.floor(limit) if comparison == "lte" else math.ceil(limit) - 1


def _float_limits(comparison: Comparison, limit: float) -> tuple[float, float]:
    """The least and the greatest finite float that it allows; the former more: none."""
    if comparison in ("gte", "gt"):
        return (limit if comparison == "gte" else math.nextafter(limit, math.inf)) + 0.0, _LARGEST
    return -_LARGEST, (limit if comparison == "lte" else math.nextafter(limit, -math.inf)) + 0.0
