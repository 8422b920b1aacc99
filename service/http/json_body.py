"""Large JSON bodies: their values are counted before any is built, and long lists are built in pieces.

A parser holds the interpreter until it is done, and with it the event loop, in whatever thread it runs. So
what takes it long is refused, and what is long is cut.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from tercet.index.documents.json_values import loads
from tercet.models.representations import Int64
from tercet.service.exceptions import RequestTooLargeError

LARGE_BYTES = 2**16  # a smaller body takes less than a millisecond, whatever it holds
MAX_VALUES = 150_000
MAX_KEYS = 2**13  # an object's entry takes as long as dozens of numbers
SCANNED_BYTES = 2**18
PIECE_BYTES = 2**18

COMMA, COLON, QUOTE = b',:"'
OPEN_LIST, OPEN_OBJECT = b"[{"
_IS_MARK = np.zeros(256, np.bool_)
_IS_MARK[list(b"[]{},:")] = True
_STEP = np.zeros(256, np.int64)  # what a mark adds to the depth
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


@dataclass(frozen=True, slots=True)
class Structure:
    """The marks of a JSON text outside its strings, `[ ] { } , :`, in order.

    positions: int64[M]; marks: uint8[M]; ends_in_string: whether the last string lacks its end.
    """

    positions: Int64
    marks: npt.NDArray[np.uint8]
    ends_in_string: bool


def scan(body: bytes) -> Structure:
    """Where the marks of a body are, be it valid or not.

    Raises RequestTooLargeError for more than MAX_VALUES values or MAX_KEYS entries of objects.
    """
    positions: list[Int64] = [np.zeros(0, np.int64)]
    marks: list[npt.NDArray[np.uint8]] = [np.zeros(0, np.uint8)]
    values = keys = start = 0
    in_string = False
    while start < len(body):
        part = body[start : start + SCANNED_BYTES]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # with what the last one escapes
            part = body[start : start + len(part) + 1]
        # Escapes become blanks of the same length: from here on, every quote opens or closes a string.
        codes = np.frombuffer(part.replace(rb"\\", b"  ").replace(rb"\"", b"  "), np.uint8)
        inside = (np.cumsum(codes == QUOTE, dtype=np.uint8) & 1).astype(np.bool_) ^ in_string
        in_string = bool(inside[-1])
        found = np.flatnonzero(_IS_MARK[codes] & ~inside)
        positions.append(found + start)
        marks.append(codes[found])
        keys += int(np.count_nonzero(marks[-1] == COLON))
        values += int(np.count_nonzero((marks[-1] == COMMA) | (_STEP[marks[-1]] > 0)))
        if values > MAX_VALUES or keys > MAX_KEYS:
            raise RequestTooLargeError(
                f"the body has more than {MAX_VALUES} values or {MAX_KEYS} entries of objects: split the "
                'request, or send vectors as base64, as /embed gives them for "encoding": "base64"'
            )
        start += len(part)
    return Structure(np.concatenate(positions), np.concatenate(marks), in_string)


def parse(body: bytes, structure: Structure) -> Any:
    """The value of a scanned body, as `loads` gives it. Raises orjson.JSONDecodeError."""
    if structure.ends_in_string:
        raise orjson.JSONDecodeError("a string has no end", "", 0)
    longest = _longest_list(structure)
    if longest is None:
        return loads(body)
    first, last, commas = longest
    items = [item for piece in _pieces(first, last, commas) for item in _items(body[piece])]
    if len(items) != len(commas) + 1:
        raise orjson.JSONDecodeError("a list has an empty place", "", 0)
    place = secrets.token_hex(8)
    whole = loads(b'%b"%b"%b' % (body[: first + 1], place.encode(), body[last:]))
    for key, value in whole.items():
        if value == [place]:
            whole[key] = items
    return whole


def _longest_list(structure: Structure) -> tuple[int, int, Int64] | None:
    """Of the lists that are an entry of the outermost object the longest: its brackets and its commas.

    None where there is none with a comma, or where brackets do not fit.
    """
    positions, marks = structure.positions, structure.marks
    depth = np.cumsum(_STEP[marks])
    opens = np.flatnonzero((marks == OPEN_LIST) & (depth == 2))
    ends = np.flatnonzero((_STEP[marks] < 0) & (depth == 1))
    if len(opens) == 0 or marks[0] != OPEN_OBJECT:
        return None
    following = np.searchsorted(ends, opens)
    opens, following = opens[following < len(ends)], following[following < len(ends)]
    if len(opens) == 0:
        return None
    closes = ends[following]
    longest = int(np.argmax(positions[closes] - positions[opens]))
    inner = slice(int(opens[longest]) + 1, int(closes[longest]))
    commas = positions[inner][(marks[inner] == COMMA) & (depth[inner] == 2)]
    if len(commas) == 0:
        return None
    return int(positions[opens[longest]]), int(positions[closes[longest]]), commas


def _pieces(first: int, last: int, commas: Int64) -> Iterator[slice]:
    """What lies between two brackets, cut at commas into pieces of PIECE_BYTES or one item more."""
    steps = np.searchsorted(commas, np.arange(first + PIECE_BYTES, last, PIECE_BYTES))
    cuts = [first, *np.unique(commas[steps[steps < len(commas)]]).tolist(), last]
    return (slice(start + 1, stop) for start, stop in pairwise(cuts))


def _items(piece: bytes) -> list[Any]:
    return list(loads(b"[%b]" % piece))
