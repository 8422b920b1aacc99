"""`docs/training-settings.md` has every key of every stage, with its default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from tercet.training.settings.adapter import AdapterKind
from tercet.training.settings.reading import RUNS
from tercet.training.settings.table import Table

TABLES: dict[str, tuple[str, ...]] = {
    "Top": (),
    "[base]": ("base",),
    "[architecture]": ("architecture",),
    "[encoder]": ("encoder",),
    "[heads]": ("heads",),
    "[data]": ("data",),
    "[[data.sources]]": ("data", "sources"),
    "[batches]": ("batches",),
    "[losses]": ("losses",),
    "[teacher]": ("teacher",),
    "[mining]": ("mining",),
    "[pretraining]": ("pretraining",),
    "[adapter]": ("adapter",),
    "[optimization]": ("optimization",),
}


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
                name not in get_args(AdapterKind) and not any(tables_in(field.annotation))
            ):
                found.setdefault(name, []).append(field)
    return found


def test_the_page_lists_every_key_with_its_default(repository: Path) -> None:
    page = (repository / "docs" / "training-settings.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    assert list(sections) == list(TABLES)
    for name, place in TABLES.items():
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .*? \|$", sections[name], re.M))
        found = keys(place)
        assert set(rows) == set(found), name
        for key, fields in found.items():
            for field in fields:
                if key == "format" and field.is_required():  # of texts, which pairs do not need
                    continue
                assert (rows[key] == "required") == field.is_required(), f"{name} {key}"
                if not field.is_required() and field.default not in (None, "", ()) and key != "groups":
                    assert rows[key] == json.dumps(field.default), f"{name} {key}"
