"""`docs/training-settings.md` has every key of every stage, with its default."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.training.settings.keys import keys

TABLES: dict[str, tuple[str, ...]] = {
    "Top": (),
    "[base]": ("base",),
    "[architecture]": ("architecture",),
    "[encoder]": ("encoder",),
    "[heads]": ("heads",),
    "[data]": ("data",),
    "[[data.sources]]": ("data", "sources"),
    "[data.sources.tags]": ("data", "sources", "tags"),
    "[batches]": ("batches",),
    "[halfway]": ("halfway",),
    "[losses]": ("losses",),
    "[teacher]": ("teacher",),
    "[mining]": ("mining",),
    "[pretraining]": ("pretraining",),
    "[adapter]": ("adapter",),
    "[adapter.hypernetwork]": ("adapter", "hypernetwork"),
    "[adapter.fusion]": ("adapter", "fusion"),
    "[adapter.routing]": ("adapter", "routing"),
    "[optimization]": ("optimization",),
}


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
