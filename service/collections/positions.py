"""Positions as requests name them: a whole number, or behind a router one for each shard, as `3.17.2`."""

from __future__ import annotations

from tercet.index.wording import shown
from tercet.service.exceptions import InvalidRequestError

Position = int | str
"""What an answer gives as a collection's position."""

DIGITS = 19  # a number of fewer fits in 63 bits


def whole_position(given: Position, param: str) -> int:
    """A position of a collection that is on one server. Raises InvalidRequestError naming the field."""
    if isinstance(given, int):
        return given
    if not (given.isascii() and given.isdecimal() and len(given) < DIGITS):
        raise InvalidRequestError(
            f"{param} is {shown(given, 40)}; use a whole number of at least 0, since this server has the "
            "collection undivided",
            param,
        )
    return int(given)
