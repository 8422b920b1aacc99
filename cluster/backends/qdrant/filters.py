"""Conditions in Qdrant's language.

Qdrant compares integers and numbers as float64, knows no order of strings, and has no path to a field with
a double quote in its name. There, what it is given allows more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from qdrant_client import models

from tercet.cluster.backends.records import strings_of
from tercet.index.documents.conditions import AllOf, AnyOf, Between, Condition, Except, OneOf, Within
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.numbers import EXACT
from tercet.transfer.qdrant.points import field_key

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING = models.HasIdCondition(has_id=[])
EVERYTHING = models.Filter(must_not=[NOTHING])


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A condition there. exact: whether it allows no others."""

    condition: models.Condition
    exact: bool

    @property
    def filter(self) -> models.Filter:
        """As requests take it."""
        return self.condition if isinstance(self.condition, models.Filter) else _all([self.condition])


def narrowed(condition: Condition) -> Narrowed:
    """A condition over declared fields."""
    if isinstance(condition, AllOf | AnyOf):
        parts = [narrowed(part) for part in condition.parts]
        joined = _all if isinstance(condition, AllOf) else _any
        return Narrowed(joined([part.condition for part in parts]), all(part.exact for part in parts))
    if isinstance(condition, Except):
        part = narrowed(condition.part)
        if not part.exact:
            return Narrowed(EVERYTHING, exact=False)
        return Narrowed(models.Filter(must_not=[part.condition]), exact=True)
    key = field_key(condition.field)
    if key is None or "." in condition.field:  # a path, perhaps
        return Narrowed(EVERYTHING, exact=False)
    if isinstance(condition, OneOf):
        strings = strings_of(condition)
        found = _field(key, match=models.MatchAny(any=strings)) if strings else NOTHING
        return Narrowed(found, exact=True)
    present = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key=key))])
    if isinstance(condition, Between):
        return Narrowed(present, exact=False)
    if isinstance(condition, Within):
        return _within(key, condition)
    return Narrowed(present, exact=True)


def _within(key: str, condition: Within) -> Narrowed:
    intervals = condition.intervals
    if condition.kind == "boolean":
        held = [value for value in (False, True) if intervals.hold(np.array([value]))[0]]
        return Narrowed(_any([_field(key, match=models.MatchValue(value=value)) for value in held]), True)
    pairs = zip(intervals.lows.tolist(), intervals.highs.tolist(), strict=True)
    parts = [_interval(key, condition.kind, low, high) for low, high in pairs]
    return Narrowed(_any([part.condition for part in parts]), all(part.exact for part in parts))


def _interval(key: str, kind: FieldType, low: int | float, high: int | float) -> Narrowed:
    if kind == "datetime":
        # Up to the next microsecond, since finer fractions are cut.
        limits = models.DatetimeRange(gte=_moment(int(low)), lt=_moment(int(high) + 1))
        return Narrowed(_field(key, range=limits), exact=True)
    if kind == "number":
        return Narrowed(_field(key, range=models.Range(gte=low, lte=high)), exact=True)
    if low == high and abs(low) >= EXACT:
        return Narrowed(_field(key, match=models.MatchValue(value=int(low))), exact=True)
    # What is nearest to a larger integer as a float may be on its other side.
    exact = (abs(low) < EXACT or low == -(2**63)) and (abs(high) < EXACT or high == 2**63 - 1)
    range = models.Range(
        gte=low if abs(low) < EXACT else None if low < 0 else EXACT,
        lte=high if abs(high) < EXACT else None if high > 0 else -EXACT,
    )
    return Narrowed(_field(key, range=range), exact)


def _moment(microseconds: int) -> datetime | None:
    """None beyond the years that can be told."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def _field(
    key: str,
    match: models.Match | None = None,
    range: models.RangeInterface | None = None,
) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=match, range=range)


def _all(parts: Sequence[models.Condition]) -> models.Filter:
    return models.Filter(must=list(parts)) if parts else EVERYTHING


def _any(parts: Sequence[models.Condition]) -> models.Filter:
    return models.Filter(should=list(parts) or [NOTHING])
