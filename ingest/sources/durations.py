"""Durations in ISO 8601, which Arrow's are told in, as numbers of seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tercet.index.candidates import Document
from tercet.index.documents.metadata import FieldType

_DURATION = re.compile(
    r"(-?)P(?=[T\d])(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,18}(?:\.\d{1,9})?)S)?)?",
    re.ASCII,
)
_SECONDS = (86_400, 3600, 60)  # of a day, an hour and a minute


def with_seconds(document: Document, fields: Mapping[str, FieldType]) -> Document:
    """The document with seconds for durations in fields that are declared to be numbers or integers."""
    numbers = {name for name, kind in fields.items() if kind in ("number", "integer")}
    changed = {name: _seconds(document.metadata[name]) for name in numbers & document.metadata.keys()}
    return replace(document, metadata={**document.metadata, **changed}) if changed else document


def _seconds(value: Any) -> Any:
    """The seconds of a duration, or of each of a list; anything else as it is."""
    if isinstance(value, list):
        return [_seconds(member) for member in value]
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    sign, *parts, seconds = match.groups()
    whole = sum(int(part or 0) * length for part, length in zip(parts, _SECONDS, strict=True))
    given = seconds or "0"
    total = whole + (float(given) if "." in given else int(given))
    return -total if sign else total
