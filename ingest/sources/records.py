"""One record of a source, as JSON text or as a mapping, turned into a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import orjson

from index.candidates import Document
from index.documents.json_values import TOO_DEEP, loads
from index.errors import InvalidDocumentError

_OWN_KEYS = frozenset({"id", "_id", "text", "title", "metadata"})


def document_from_json(line: bytes) -> Document:
    """The document that a line of JSON describes.

    Raises InvalidDocumentError for bytes that are not UTF-8, for text that is not JSON (NaN and infinity
    are not), and for what `document_from_record` refuses.
    """
    return document_from_record(parse_json(line))


def parse_json(line: bytes) -> Any:
    """The value that a line of JSON holds. Raises InvalidDocumentError saying why there is none."""
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


def document_from_record(record: object) -> Document:
    """The document that `{"id" or "_id", "text", "title"?, "metadata"?}` describes.

    A whole number as id becomes its decimal digits, since BEIR's judgments name ids as text. Keys beyond
    these become metadata, so that flat files can be filtered too; null stands for an absent value. Where
    a key occurs both beside `metadata` and inside it, the one inside holds.
    Raises InvalidDocumentError where a part is missing or has a wrong type.
    """
    if not isinstance(record, Mapping):
        raise InvalidDocumentError(f"expected a JSON object, got {_kind(record)}")
    text = record.get("text")
    if text is None:
        raise InvalidDocumentError('"text" is missing')
    if not isinstance(text, str):
        raise InvalidDocumentError(f'"text" must be a string, got {_kind(text)}')
    title = record.get("title")
    if title is not None and not isinstance(title, str):
        raise InvalidDocumentError(f'"title" must be a string or null, got {_kind(title)}')
    return Document(_identifier(record), text, title or None, _metadata(record))


def _identifier(record: Mapping[str, Any]) -> str:
    names = [name for name in ("id", "_id") if record.get(name) is not None]
    if not names:
        raise InvalidDocumentError('"id" (or "_id") is missing')
    if len(names) == 2 and record["id"] != record["_id"]:
        raise InvalidDocumentError(
            f'"id" is {record["id"]!r:.80} but "_id" is {record["_id"]!r:.80}: keep one'
        )
    value = record[names[0]]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidDocumentError(f'"{names[0]}" must be a string or a whole number, got {_kind(value)}')
    if not value:
        raise InvalidDocumentError(f'"{names[0]}" is empty')
    return value


def _metadata(record: Mapping[str, Any]) -> dict[str, Any]:
    inside = record.get("metadata")
    if inside is not None and not isinstance(inside, Mapping):
        raise InvalidDocumentError(f'"metadata" must be an object or null, got {_kind(inside)}')
    beside = {key: value for key, value in record.items() if key not in _OWN_KEYS and value is not None}
    return {**beside, **(inside or {})}


def _why_not_json(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"not valid UTF-8 at byte {broken.start + 1} of the line"
    return f"not valid JSON at character {error.pos + 1} of the line: {error.msg}"


def _kind(value: object) -> str:
    """The JSON type of a value, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    return type(value).__name__
