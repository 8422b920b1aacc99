"""What the meta of some documents holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Meta = Mapping[str, Any]


def kinds(metas: Iterable[Meta]) -> dict[str, dict[str, str]]:
    """Of each field the kind of its values: boolean, int, float or keyword."""
    found: dict[str, dict[str, str]] = {}
    for meta in metas:
        for name, value in meta.items():
            if value is not None:
                found[name] = {"type": _kind(value)}
    return found


def limits(metas: Iterable[Meta], field: str) -> dict[str, Any]:
    """The least and the greatest value of a field; None where it has none.

    Raises ValueError where numbers and strings are mixed.
    """
    values = [value for meta in metas if isinstance(value := meta.get(_name(field)), int | float | str)]
    try:
        return {"min": min(values, default=None), "max": max(values, default=None)}
    except TypeError as error:
        raise ValueError(f"the values of {field!r} have no order: {error}") from error


def unique_values(metas: Iterable[Meta], field: str) -> list[Any]:
    """The values of a field, each once, in order of type and then of value. 1, 1.0, "1" and true differ."""
    found = {_identity(value): value for meta in metas if (value := meta.get(_name(field))) is not None}
    return [value for _, value in sorted(found.items(), key=lambda one: _place(one[0], one[1]))]


def page(values: Sequence[Any], search_term: str | None, start: int, size: int) -> tuple[list[Any], int]:
    """Those of the values that contain the term, in whatever case: a part of them, and how many they are."""
    if search_term:
        values = [value for value in values if search_term.lower() in str(value).lower()]
    return list(values[start : start + size]), len(values)


def _name(field: str) -> str:
    return field.removeprefix("meta.")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {int: "int", float: "float"}.get(type(value), "keyword")


def _identity(value: object) -> tuple[str, str]:
    return type(value).__name__, json.dumps(value, sort_keys=True)


def _place(identity: tuple[str, str], value: Any) -> tuple[str, float, str]:
    number = float(value) if isinstance(value, int | float) else 0.0
    return identity[0], number, value if isinstance(value, str) else identity[1]
