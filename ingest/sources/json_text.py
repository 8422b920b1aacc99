"""JSON text to the value that it holds, or why there is none."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import orjson

from tercet.index.documents.json_values import TOO_DEEP, loads
from tercet.index.errors import InvalidDocumentError

NO_NUMBER = "JSON has no such number; use null"
SHOWN_CHARACTERS = 200


def parse_json(text: bytes, of: str = "the line") -> Any:
    """The value that a text of JSON holds. of: what the text is, for messages.

    Raises InvalidDocumentError for bytes that are not UTF-8, and for text that is not JSON: NaN and infinity
    are not.
    """
    try:
        return loads(text)
    except orjson.JSONDecodeError as error:
        if b"\\ud" in text.lower():
            return _with_half_characters(text, of)
        raise InvalidDocumentError(_why_not_json(text, of, error)) from error


def _with_half_characters(text: bytes, of: str) -> Any:
    """The value of a JSON text; lets half a character through, for the index to replace."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise InvalidDocumentError(TOO_DEEP) from error
    except json.JSONDecodeError as error:
        raise InvalidDocumentError(_not_json(error, of)) from error
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
            where = f'"{path[:SHOWN_CHARACTERS]}"' if path else "it"
            raise InvalidDocumentError(f"{where} is {value}: {NO_NUMBER}")
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        left += [(f"{path}.{key}" if path else str(key), inner) for key, inner in reversed([*items])]


def _why_not_json(text: bytes, of: str, error: orjson.JSONDecodeError) -> str:
    try:
        value = json.loads(text.decode())
    except UnicodeDecodeError as broken:
        position = f"byte {broken.start + 1} of {of}"
        return f"not valid UTF-8 at {position}: save it as UTF-8, which JSON is, whatever --encoding says"
    except (ValueError, RecursionError):
        value = None
    _refuse_not_finite(value)
    return _not_json(error, of)


def _not_json(error: json.JSONDecodeError, of: str) -> str:
    return f"not valid JSON at character {error.pos + 1} of {of}: {error.msg}"
