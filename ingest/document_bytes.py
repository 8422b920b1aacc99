"""What documents take of memory, so that as many are held at a time as there is room for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tercet.index.candidates import Document

_VALUE_BYTES = 64  # of a number, a list or an object, with what points to it


def document_bytes(document: Document) -> int:
    """About how many bytes of memory a document takes, its metadata included."""
    return len(document.text) + len(document.title or "") + value_bytes(document.metadata)


def value_bytes(value: Any) -> int:
    """About how many bytes of memory a value of JSON takes."""
    size, left = 0, [value]
    while left:
        value = left.pop()
        size += _VALUE_BYTES
        if isinstance(value, str):
            size += len(value)
        elif isinstance(value, Mapping):
            size += sum(map(len, value))
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
    return size
