"""Values of tables that are but text: cells of CSV, and names of folders."""

from __future__ import annotations

import contextlib
import re

from tercet.index.documents.metadata import FieldType

_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)
_BOOLEANS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def cell_value(cell: str, kind: FieldType | None) -> str | int | float | bool:
    """What a field of the type holds; the text as it is where there is no field, or it cannot hold it."""
    text = cell.strip()
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text)
    if kind == "number":
        with contextlib.suppress(ValueError):
            return float(text)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), cell)
    return text if kind == "datetime" else cell
