"""JSON text to the value that it holds, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import orjson

from index.documents.json_values import TOO_DEEP, loads
from index.errors import InvalidDocumentError

NO_NUMBER = "JSON has no such number; use null"
SHOWN_CHARACTERS = 200


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
        value = json.loads(line)
    except RecursionError as error:
        raise InvalidDocumentError(TOO_DEEP) from error
    except ValueError as error:
        raise InvalidDocumentError(f"not valid JSON: {error}") from error
    _refuse_not_finite(value)
    return value


def _refuse_not_finite(value: Any) -> None:
    """Raises InvalidDocumentError naming the first number that JSON has not, though Python reads it."""
    left = [("", value)]
    while left:
        path, value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidDocumentError(f'"{path[:SHOWN_CHARACTERS]}" is {value}: {NO_NUMBER}')
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        left += [(f"{path}.{key}" if path else str(key), inner) for key, inner in reversed([*items])]


def _why_not_json(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as broken:
        return f"not valid UTF-8 at byte {broken.start + 1} of the line"
    except (ValueError, RecursionError):
        value = None
    _refuse_not_finite(value)
    return f"not valid JSON at character {error.pos + 1} of the line: {error.msg}"
