"""The keys of a training run's settings, by their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic.fields import FieldInfo

from tercet.training.settings.adapter import AdapterKind
from tercet.training.settings.reading import RUNS
from tercet.training.settings.table import Table


def tables_in(annotation: Any) -> Iterator[type[Table]]:
    """The tables of an annotation: itself, or inside an optional or a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, Table):
        yield annotation
    for argument in get_args(annotation):
        yield from tables_in(argument)


def keys(place: tuple[str, ...]) -> dict[str, list[FieldInfo]]:
    """Keys that are no tables themselves, of the table at a place in any stage."""
    tables: list[type[Table]] = list(RUNS)
    for key in place:
        inner = [table.model_fields[key].annotation for table in tables if key in table.model_fields]
        tables = [table for annotation in inner for table in tables_in(annotation)]
    found: dict[str, list[FieldInfo]] = {}
    for table in tables:
        for name, field in table.model_fields.items():
            if name == "groups" or (
                not (place == ("adapter",) and name in get_args(AdapterKind))
                and not any(tables_in(field.annotation))
            ):
                found.setdefault(name, []).append(field)
    return found
