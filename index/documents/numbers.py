"""Numbers of documents and filters: each is held exactly, or refused with what the limit is.

JSON has one kind of number, so `2020.0` is the integer 2020; an integer or a float from elsewhere may be
either. Beyond EXACT a float is no longer every integer: one that says to be whole there may have been
rounded, and an integer may become another one as a float. So neither passes for the other there.
"""

from __future__ import annotations

import math

from tercet.index.wording import shown

EXACT = 2**53  # up to here float64 holds every integer
INT64 = (-(2**63), 2**63 - 1)
JSON_INTEGERS = (-(2**63), 2**64 - 1)  # what readers of JSON keep whole: signed or unsigned 64 bits


def as_integer(value: int | float) -> int | float:
    """The integer that a number is, where it surely is one; else the number as it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value


def exact_integer(value: int | float) -> int:
    """The signed integer of 64 bits that a number is. Raises ValueError saying why it is none."""
    number = comparable_integer(value)
    if isinstance(number, float):
        raise ValueError(f"{shown(value)} is no whole number; use one, or a field of type number")
    return number


def comparable_integer(value: int | float) -> int | float:
    """A number that integers of 64 bits are compared with: such an integer, or a fraction between two.

    Raises ValueError where it is neither, or is not known exactly.
    """
    number = as_integer(value)
    if isinstance(number, int):
        if not INT64[0] <= number <= INT64[1]:
            raise ValueError(
                f"{shown(number)} does not fit in 64 bits, from {INT64[0]} to {INT64[1]}; use a field of "
                "type keyword and strings"
            )
        return number
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite; leave it out")
    if number.is_integer():
        raise ValueError(
            f"{shown(number)} is a float beyond ±{EXACT}, where floats are rounded; write the digits of an "
            "integer, without a point or an exponent"
        )
    return number


def exact_number(value: int | float) -> float:
    """The finite float64 that a number is. Raises ValueError saying why it is none."""
    if isinstance(value, int):
        if abs(value) > EXACT:
            raise ValueError(
                f"{shown(value)} is beyond ±{EXACT}, where a number does not hold every integer; use a "
                "field of type integer (64 bits), or keyword and strings"
            )
        return float(value)
    if not math.isfinite(value):
        raise ValueError(f"{value} is not finite; leave it out")
    return value


def require_json_integer(value: int) -> None:
    """Raises ValueError for an integer that not every reader of JSON keeps whole."""
    if not JSON_INTEGERS[0] <= value <= JSON_INTEGERS[1]:
        raise ValueError(
            f"the integer {shown(value).removeprefix('an integer ')} does not fit in 64 bits "
            f"({JSON_INTEGERS[0]} to {JSON_INTEGERS[1]}); write it as a string"
        )
