"""Metadata fields as flags declare them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

import typer

if TYPE_CHECKING:
    from tercet.index.documents.metadata import FieldType


def parse_fields(declared: list[str]) -> dict[str, FieldType]:
    """Fields from `NAME:TYPE` words. Raises typer.BadParameter."""
    from tercet.index.documents.metadata import FieldType

    fields: dict[str, FieldType] = {}
    for word in declared:
        name, _, kind = word.rpartition(":")
        if not name or kind not in get_args(FieldType):
            known = ", ".join(get_args(FieldType))
            raise typer.BadParameter(
                f"{word!r} is not NAME:TYPE with a type of {known}", param_hint="--field"
            )
        if name in fields:
            raise typer.BadParameter(f"field {name!r} is given twice", param_hint="--field")
        fields[name] = cast("FieldType", kind)
    return fields
