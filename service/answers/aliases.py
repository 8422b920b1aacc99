"""Aliases in the shape of an answer, the same for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def alias_record(alias: str, meant: Sequence[str]) -> dict[str, Any]:
    """An alias and the collections that it means; `collection` is the only one, None where there are several,
    so that who knows of one alone does not take it for all.
    """
    return {
        "alias": alias,
        "collection": meant[0] if len(meant) == 1 else None,
        "collections": list(meant),
    }
