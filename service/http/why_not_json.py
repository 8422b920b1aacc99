"""Why a text is no JSON, in words: the place, what stands there, and what to send instead."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from tercet.ingest.sources.json_text import NO_NUMBER

SHOWN_CHARACTERS = 20
PACKED: Mapping[bytes, str] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

# How a complaint of orjson begins → what is wrong with what stands at its place, and what to do.
_HALF = "half a character; send both halves, or the character itself in UTF-8"
REMEDIES: Mapping[str, str] = {
    "no low surrogate": _HALF,
    "invalid low surrogate": _HALF,
    "invalid high surrogate": _HALF,
    "number is infinity": "beyond 1.8e308, the largest number; send a smaller one",
    "number with leading zero": "a number does not begin with 0; leave it out",
    "no digit after sign": "a number begins with a digit, or with - and a digit",
    "trailing comma": "no value follows; leave the comma out",
    "unexpected control character": "a string has no such character; write an escape, such as \\n",
    "invalid escaped sequence": "no such escape; write a backslash itself as two",
    "unexpected character, expected a string key": "a field's name belongs here, in double quotes",
    "unexpected character, expected a JSON value": "a value belongs here; strings stand in double quotes",
    "unexpected content after document": "the value has ended before; send one value alone",
    "UTF-8 byte order mark": "a byte order mark; leave it out",
    "failed to allocate memory": "it nests too deep, or does not end; flatten it",
}
_EXPECTED = "unexpected character, expected "
_NO_NUMBER = re.compile(r"[+-]?(nan|inf(inity)?)\b", re.IGNORECASE)
_OF_PYTHON = re.compile(r"(True|False|None|undefined)\b")
_SHOWN = re.compile(r"[+-]?[\w.]+|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)


def why_not_json(text: bytes, error: orjson.JSONDecodeError) -> str:
    """Why a text is not what was wanted. error: of who parsed it, be it in pieces.

    It is parsed once more, up to the mistake.
    """
    for mark, coding in PACKED.items():
        if text.startswith(mark):
            return f"it begins as {coding} does; say so with the header Content-Encoding: {coding}"
    try:
        characters = text.decode()
    except UnicodeDecodeError as broken:
        return f"byte {broken.start + 1} is 0x{text[broken.start]:02x}, which is not UTF-8; send UTF-8"
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as found:
        place, complaint = found.pos, found.msg
    else:
        return error.msg  # it nests too deep for who asks, though not for orjson
    if complaint.startswith("depth limit"):
        return error.msg
    if not characters[place:].strip():
        where = _place(characters, len(characters))
        return f"it ends at {where}, too early: close every string, list and object"
    if complaint == "no digit after sign" and characters[place - 1 : place] in ("-", "+"):
        place -= 1
    return (
        f"{_place(characters, place)} has {_shown(characters, place)}: {_wrong(characters, place, complaint)}"
    )


def _wrong(characters: str, place: int, complaint: str) -> str:
    if _NO_NUMBER.match(characters, place):
        return NO_NUMBER
    if _OF_PYTHON.match(characters, place):
        return "JSON has true, false and null"
    for beginning, wrong in REMEDIES.items():
        if complaint.startswith(beginning):
            return wrong
    if complaint.startswith(_EXPECTED):
        return f"{complaint.removeprefix(_EXPECTED)} belongs here"
    return complaint


def _shown(characters: str, place: int) -> str:
    found = _SHOWN.match(characters, place)
    part = characters[place : place + 1] if found is None else found.group()
    shown = part if part.isprintable() else ascii(part)[1:-1]
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[:SHOWN_CHARACTERS]}…"


def _place(characters: str, place: int) -> str:
    """As editors count: from 1, a column being a character."""
    line = characters.count("\n", 0, place) + 1
    column = place - characters.rfind("\n", 0, place)
    return f"line {line}, column {column}"
