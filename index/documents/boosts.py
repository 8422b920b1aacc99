"""What is added to the scores of documents for what their declared fields say.

A filter adds the same to every document that it matches. A decay adds the most where a moment or a number is
at its origin, and less the further it is away. With `d = max(0, |value - origin| - offset)` and `a` the value
at the scale, these are the decay functions of Elasticsearch ("Function score query", reference manual):

`exp`: `exp(ln(a) d / scale)`; `gauss`: `exp(ln(a) (d / scale)^2)`; `linear`: `max(0, 1 - (1 - a) d / scale)`.

Each is 1 up to `offset` from the origin, and `a` at `offset + scale`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tercet.index.documents.datetimes import microseconds_of
from tercet.index.documents.declared import unsuited
from tercet.index.documents.filters import Filter, check_filter, parse_filter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import InvalidQueryError
from tercet.index.wording import shown
from tercet.models.representations import Float64

MAX_BOOSTS = 32
LARGEST_ADD = 1e6
Decay = Literal["exp", "linear", "gauss"]
DECAYS: tuple[Decay, ...] = get_args(Decay)
DECAYING: tuple[FieldType, ...] = ("datetime", "integer", "number")
HALF = 0.5
_STRING, _NUMBER, _EITHER = (str,), (int, float), (str, int, float)
_CALLED: dict[tuple[type, ...], str] = {
    _STRING: "a string",
    _NUMBER: "a number",
    _EITHER: "a string or a number",
}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MAX_DIGITS, MAX_DECIMALS = 9, 6  # of a duration: before its point, and behind it
_LONG_DURATION = re.compile(r"\d+(?:\.\d+)?[smhdw]", re.ASCII)
_DURATION = re.compile(rf"(\d{{1,{MAX_DIGITS}}}(?:\.\d{{1,{MAX_DECIMALS}}})?)([smhdw])", re.ASCII)


@dataclass(frozen=True, slots=True)
class FilterBoost:
    """Adds to the score of a document that the filter matches."""

    filter: Filter
    add: float


@dataclass(frozen=True, slots=True)
class DecayBoost:
    """Adds to the score of a document that has a value in a field: of `add` the share that the decay leaves,
    of several values the largest.

    origin: a moment as `datetimes` reads it for a datetime, else a number; scale, offset: for a datetime such
    as "30d", in seconds, minutes, hours, days or weeks, else numbers; at_scale: the share there.
    """

    field: str
    decay: Decay
    origin: str | float
    scale: str | float
    add: float
    offset: str | float = 0
    at_scale: float = HALF


Boost = FilterBoost | DecayBoost


@dataclass(frozen=True, slots=True)
class Curve:
    """A decay in numbers: of microseconds for a datetime, else of the field's own."""

    decay: Decay
    origin: float
    scale: float
    offset: float
    at_scale: float

    @staticmethod
    def of(boost: DecayBoost, kind: FieldType) -> Curve:
        """The curve of a boost over a field of this type. Raises InvalidQueryError."""
        if kind == "datetime":
            origin, scale, offset = _moment(boost.origin), _duration("scale", boost.scale), 0.0
            if boost.offset != 0:
                offset = _duration("offset", boost.offset)
        else:
            origin, scale, offset = (
                _number(name, value, kind)
                for name, value in (
                    ("origin", boost.origin),
                    ("scale", boost.scale),
                    ("offset", boost.offset),
                )
            )
        if not scale > 0:
            raise InvalidQueryError(f"scale is {shown(boost.scale)}; use more than 0")
        if not offset >= 0:
            raise InvalidQueryError(f"offset is {shown(boost.offset)}; use at least 0")
        return Curve(boost.decay, origin, scale, offset, boost.at_scale)

    def shares(self, values: Float64) -> Float64:
        """What is left at values float64[K]: float64[K], from 0 to 1."""
        with np.errstate(over="ignore"):  # what is infinitely far away gets nothing
            away = np.maximum(np.abs(values - self.origin) - self.offset, 0) / self.scale
            if self.decay == "linear":
                return np.maximum(1 - (1 - self.at_scale) * away, 0.0)
            exponent = away if self.decay == "exp" else np.square(away)
            return np.exp(math.log(self.at_scale) * exponent)


def parse_boost(value: object) -> Boost:
    """A boost from parsed JSON: `{"filter": {…}, "add": 0.1}`, or the parts of a DecayBoost.

    Raises InvalidQueryError for another shape; whether a boost fits a collection is for `check_boost`.
    """
    if not isinstance(value, Mapping):
        raise InvalidQueryError("a boost is an object")
    given = {name: inner for name, inner in value.items() if inner is not None}
    kind = FilterBoost if "filter" in given else DecayBoost
    unknown = next((name for name in given if name not in kind.__slots__), None)
    if unknown is not None:
        raise InvalidQueryError(f"{shown(unknown)} is no part of it; use {', '.join(kind.__slots__)}")
    if not given.keys() & {"filter", "field"}:
        raise InvalidQueryError(
            "filter and field are missing; give filter, or field with decay, origin and scale"
        )
    add = _part(given, "add", _NUMBER)
    if kind is FilterBoost:
        return FilterBoost(parse_filter(given["filter"]), add)
    return DecayBoost(
        _part(given, "field", _STRING),
        _part(given, "decay", _STRING),
        _part(given, "origin", _EITHER),
        _part(given, "scale", _EITHER),
        add,
        _part(given, "offset", _EITHER, 0),
        _part(given, "at_scale", _NUMBER, HALF),
    )


def _part(given: Mapping[str, object], name: str, kinds: tuple[type, ...], default: object = None) -> Any:
    value = given.get(name, default)
    if value is None:
        raise InvalidQueryError(f"{name} is missing; give it")
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise InvalidQueryError(f"{name} is {shown(value)}; use {_CALLED[kinds]}")
    return value


def check_boosts(boosts: Sequence[Boost], fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError, naming the boost by its index, where one does not fit the declared fields."""
    if len(boosts) > MAX_BOOSTS:
        raise InvalidQueryError(f"{len(boosts)} boosts are given; the limit is {MAX_BOOSTS}")
    for index, boost in enumerate(boosts):
        try:
            check_boost(boost, fields)
        except InvalidQueryError as error:
            raise InvalidQueryError(f"boosts.{index}: {error}") from error


def check_boost(boost: Boost, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidQueryError where a boost does not fit the declared fields."""
    if not abs(boost.add) <= LARGEST_ADD:  # NaN fails the comparison too
        raise InvalidQueryError(f"add is {boost.add}; use a number within {LARGEST_ADD:g}")
    if isinstance(boost, FilterBoost):
        check_filter(boost.filter, fields)
        return
    kind = fields.get(boost.field)
    if kind not in DECAYING:
        raise InvalidQueryError(f"a decay {unsuited(boost.field, fields, DECAYING)}")
    if boost.decay not in DECAYS:
        raise InvalidQueryError(f"decay is {shown(boost.decay)}; use {', '.join(DECAYS)}")
    if not 0 < boost.at_scale < 1:
        raise InvalidQueryError(f"at_scale is {boost.at_scale}; use a number between 0 and 1")
    Curve.of(boost, kind)


def _moment(value: str | float) -> float:
    if not isinstance(value, str):
        raise InvalidQueryError(
            f'origin is {shown(value)}, but the field is datetime; use such as "2026-01-01"'
        )
    try:
        return float(microseconds_of(value))
    except ValueError as error:
        raise InvalidQueryError(f"origin is {shown(value)}, which is no moment in time: {error}") from error


def _duration(name: str, value: str | float) -> float:
    """Microseconds."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        if isinstance(value, str) and _LONG_DURATION.fullmatch(value):
            raise InvalidQueryError(
                f"{name} is {shown(value)}; use at most {MAX_DIGITS} digits, and {MAX_DECIMALS} behind the "
                "point: a larger unit for more"
            )
        raise InvalidQueryError(
            f"{name} is {shown(value)}, but the field is datetime; use a number with s, m, h, d or w, as "
            '"30d"'
        )
    return float(match[1]) * _SECONDS[match[2]] * 1e6


def _number(name: str, value: str | float, kind: FieldType) -> float:
    if isinstance(value, str | bool):
        raise InvalidQueryError(f"{name} is {shown(value)}, but the field is {kind}; use a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidQueryError(f"{name} is {shown(value)}; use a finite number")
    return number
