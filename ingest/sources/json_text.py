"""JSON text to the value that it holds, or why there is none."""

from __future__ import annotations

import json
from typing import Any

import orjson

from index.documents.json_values import TOO_DEEP, loads
from index.errors import InvalidDocumentError


def parse_json(line: bytes) -> Any:
    """The value that a line of JSON holds.

    Raises InvalidDocumentError for bytes that are not UTF-8, and for text that is not JSON: NaN and infinity
    are not.
    """
    try:
        return loads(line)
    except orjson.JSONDecodeError as error:
        if b"\\ud" in line.lower():
            return _with_half_characters(line)
        raise InvalidDocumentError(_why_not_json(line, error)) from error


def _with_half_characters(line: bytes) -> Any:
    """As `parse_json`, but lets half a character through, for the index to replace."""
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise InvalidDocumentError(TOO_DEEP) from error
    except ValueError as error:
        raise InvalidDocumentError(f"not valid JSON: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number; use null")


def _why_not_json(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"not valid UTF-8 at byte {broken.start + 1} of the line"
    return f"not valid JSON at character {error.pos + 1} of the line: {error.msg}"
