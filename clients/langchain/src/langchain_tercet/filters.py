"""Filters as LangChain's users write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tercet_client.types import Filter

OPERATIONS = {"and", "or", "not", "eq", "in", "gte", "gt", "lte", "lt", "exists"}


def filter_tree(filter: Mapping[str, Any] | None) -> Filter | None:
    """A filter of Tercet as it is, and `{"lang": "en", "year": 2001}` as: each field has this value.

    A list means one of its values. An object with the one key `eq`, `in` and so on is a filter of Tercet.
    """
    if not filter:
        return None
    if len(filter) == 1 and next(iter(filter)) in OPERATIONS:
        return cast(Filter, dict(filter))
    parts = [
        {"in": {field: value}} if isinstance(value, list) else {"eq": {field: value}}
        for field, value in filter.items()
    ]
    return cast(Filter, {"and": parts})
