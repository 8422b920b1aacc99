"""Metadata as the server keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def json_metadata(id: str, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A document's metadata, if JSON has a form for it. Raises ValueError, which names the document."""
    try:
        json.dumps(metadata, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the metadata of document {id!r} is not JSON: {error}; use strings, finite numbers, booleans, "
            "null, lists and objects of these"
        ) from error
    return dict(metadata)
