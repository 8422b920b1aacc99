"""Paths of requests, decoded so that a slash within a segment is told from one between segments."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

# No text in UTF-8 decodes to it, so that it stands for "%2F" alone.
ENCODED_SLASH = "\udc2f"
_WRITTEN = re.compile(rb"%2[fF]")


def decoded(raw_path: bytes) -> str:
    """The path that routes are matched with; other bytes than UTF-8 become U+FFFD."""
    parts = (unquote_to_bytes(part).decode("utf-8", "replace") for part in _WRITTEN.split(raw_path))
    return ENCODED_SLASH.join(parts)


def with_slashes(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a path, as their clients mean them."""
    return {
        name: value.replace(ENCODED_SLASH, "/") if isinstance(value, str) else value
        for name, value in parameters.items()
    }


def shown(path: str) -> str:
    """A path for logs and messages."""
    return path.replace(ENCODED_SLASH, "%2F")
