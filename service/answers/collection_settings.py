"""A collection's settings as routers and shards tell each other: all that its folder has of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from index.candidates import CandidateLimits, Weights
from index.catalog.defaults import SearchDefaults, Tuning
from index.catalog.settings import CollectionSettings, settings_of_record
from index.codebook import Codebook

GIVEN = Path("settings")  # by which messages name where they come from


def settings_record(settings: CollectionSettings) -> dict[str, Any]:
    """The settings as JSON, to be read by `settings_from`."""
    codebook = settings.codebook
    return {
        "settings": orjson.loads(settings.content),
        "later_fields": {name: settings.fields[name] for name in settings.later_fields},
        "codebook": None if codebook is None else base64.b64encode(codebook.content).decode(),
    }


def settings_from(record: Mapping[str, Any]) -> CollectionSettings:
    """Raises DamagedIndexError, InvalidFieldError, InvalidNameError or ValueError for another record."""
    codebook = None
    if record["codebook"] is not None:
        codebook = Codebook.of_content(base64.b64decode(record["codebook"], validate=True), "codebook")
    settings = settings_of_record(record["settings"], GIVEN, codebook)
    return settings.with_fields(record["later_fields"])


def defaults_record(defaults: SearchDefaults | None) -> dict[str, Any] | None:
    """Stored defaults as JSON, to be read by `defaults_from`."""
    return None if defaults is None else asdict(defaults)


def defaults_from(record: Mapping[str, Any] | None) -> SearchDefaults | None:
    """Raises KeyError or TypeError for another record."""
    if record is None:
        return None
    return SearchDefaults(
        Weights(**record["weights"]), CandidateLimits(**record["candidates"]), Tuning(**record["tuning"])
    )
