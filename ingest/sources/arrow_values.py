"""Values of Arrow as JSON has them: exactly, or not at all.

| of Arrow | in JSON |
|---|---|
| date, time, timestamp | ISO 8601 text, to the nanosecond where there are such, with the offset of its zone |
| duration | ISO 8601 text: `PT1.5S` |
| decimal | an integer of up to 18 digits; a number of up to 15, which float64 gives back; text of more |
| struct, map with strings as keys | an object; of a struct without what is null |
| list | a list |
| UUID | text |
| dictionary, run-end encoded, union, extension | what they stand for |
| binary, interval, map with other keys | nothing |
"""

from __future__ import annotations

import datetime
import math
import sys
import uuid
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow
from pyarrow import types

INTEGER_DIGITS = 18  # what surely fits in 64 bits
NUMBER_DIGITS = sys.float_info.dig
_OF_PYTHON = (pyarrow.UuidType, pyarrow.Bool8Type)  # extensions that are more there than what stores them
DECIMAL_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class BadValueError(Exception):
    """A value that is an error where it stands."""


class NoJsonError(Exception):
    """A value of a type that JSON has nothing for."""


def json_value(name: str, scalar: pyarrow.Scalar, left_out: set[str]) -> Any:
    """A value of the column or field called so. left_out: gets names of fields that are.

    Raises BadValueError for an infinite number, a moment that has no date, or a key that occurs twice;
    NoJsonError for a value that is to be left out.
    """
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if types.is_dictionary(kind) or types.is_union(kind) or types.is_run_end_encoded(kind):
        return json_value(name, scalar.value, left_out)
    if isinstance(kind, pyarrow.BaseExtensionType) and not isinstance(kind, _OF_PYTHON):
        return json_value(name, scalar.value, left_out)
    if types.is_struct(kind):
        return _object(name, scalar, left_out)
    if types.is_map(kind):
        return _map(name, scalar, left_out)
    if hasattr(scalar, "values"):  # lists of all kinds
        return [json_value(name, item, left_out) for item in scalar.values]
    if types.is_duration(kind):
        return _duration(scalar.value, DECIMAL_PLACES[kind.unit])
    if types.is_timestamp(kind) and not _known_zone(kind.tz):
        return json_value(name, scalar.cast(pyarrow.timestamp(kind.unit, "UTC")), left_out)
    try:
        if kind in (pyarrow.time64("ns"),) or (types.is_timestamp(kind) and kind.unit == "ns"):
            return _nanoseconds(scalar)
        value = scalar.as_py()
    except (ValueError, OverflowError) as error:  # as of the year 10,000
        raise BadValueError(f'"{name}" cannot be read ({error})') from error
    if types.is_decimal(kind):
        return _decimal(kind, value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if types.is_floating(kind):
        if not math.isfinite(value):
            raise BadValueError(f'"{name}" is {value}: use null for an unknown number')
        return float(value)
    if isinstance(value, str | int):
        return value
    raise NoJsonError(name)


def is_text(kind: pyarrow.DataType) -> bool:
    """Whether it is one of the types of text."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_binary(kind: pyarrow.DataType) -> bool:
    """Whether it is one of the types of bytes."""
    variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(variable or types.is_fixed_size_binary(kind))


@cache
def _known_zone(name: str | None) -> bool:
    """Whether a time zone is none, or one that this machine knows; the moments of others are told in UTC."""
    try:
        return name is None or bool(pyarrow.lib.string_to_tzinfo(name))
    except (ValueError, KeyError):
        return False


def _object(name: str, scalar: pyarrow.StructScalar, left_out: set[str]) -> dict[str, Any]:
    values = {}
    for index, field in enumerate(scalar.type):
        inner = f"{name}.{field.name}"
        try:
            value = json_value(inner, scalar[index], left_out)
        except NoJsonError as error:
            left_out.add(str(error))
            continue
        if value is not None:
            values[field.name] = value
    return values


def _map(name: str, scalar: pyarrow.MapScalar, left_out: set[str]) -> dict[str, Any]:
    if not is_text(scalar.type.key_type):
        raise NoJsonError(name)
    values: dict[str, Any] = {}
    for entry in scalar.values:
        key = entry[0].as_py()
        if key in values:
            raise BadValueError(f'"{name}" has the key {key!r:.80} twice')
        values[key] = json_value(f"{name}.{key}"[:200], entry[1], left_out)
    return values


def _decimal(kind: pyarrow.DataType, value: Decimal) -> int | float | str:
    """By the column's type, so that its values are all of one kind."""
    if kind.scale <= 0 and kind.precision - kind.scale <= INTEGER_DIGITS:
        return int(value)
    return float(value) if kind.precision <= NUMBER_DIGITS else f"{value:f}"


def _duration(value: int, decimals: int) -> str:
    whole, fraction = divmod(abs(value), 10**decimals)
    digits = f".{fraction:0{decimals}d}".rstrip("0") if fraction else ""
    return f"{'-' if value < 0 else ''}PT{whole}{digits}S"


def _nanoseconds(scalar: pyarrow.Scalar) -> str:
    """The text of a moment or time, which Python knows to the microsecond only."""
    microseconds, rest = divmod(scalar.value, 1000)
    kind = scalar.type
    coarser = pyarrow.timestamp("us", kind.tz) if types.is_timestamp(kind) else pyarrow.time64("us")
    known = pyarrow.scalar(microseconds, coarser).as_py()
    if not rest:
        return str(known.isoformat())
    text = known.isoformat(timespec="microseconds")
    end = text.index(".") + 7
    return f"{text[:end]}{rest:03d}{text[end:]}"
