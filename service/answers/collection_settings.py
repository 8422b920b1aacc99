"""A collection's settings and defaults as routers and shards tell each other, which is all of them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from tercet.index.candidates import CandidateLimits, Weights
from tercet.index.catalog.calibration import Calibration
from tercet.index.catalog.defaults import SearchDefaults, Tuning
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings, settings_of_record
from tercet.index.codebook import Codebook


def settings_record(settings: CollectionSettings) -> dict[str, Any]:
    """The settings as JSON, but for the codebook, to be read by `settings_from`."""
    return {
        "settings": orjson.loads(settings.content),
        "later_fields": {name: settings.fields[name] for name in settings.later_fields},
        "lineage": None if settings.lineage is None else settings.lineage.record,
    }


def settings_from(record: Mapping[str, Any], codebook: bytes | None, source: str) -> CollectionSettings:
    """The settings of a record. codebook: its content; source: by which messages name where it comes from.

    Raises SearchIndexError, or ValueError, KeyError or TypeError for what is none.
    """
    path, opened = Path(source), None if codebook is None else Codebook.of_content(codebook, source)
    settings = settings_of_record(Record.of(record["settings"], path), opened)
    lineage = None if record["lineage"] is None else Lineage.of_record(Record.of(record["lineage"], path))
    return replace(settings.with_fields(record["later_fields"]), lineage=lineage)


def codebook_text(settings: CollectionSettings) -> str | None:
    """The codebook of the settings as base64; None where they have none."""
    return None if settings.codebook is None else base64.b64encode(settings.codebook.content).decode()


def codebook_from(text: str | None) -> bytes | None:
    """The content of `codebook_text`. Raises ValueError or TypeError for another text."""
    return None if text is None else base64.b64decode(text, validate=True)


def defaults_record(defaults: SearchDefaults | None) -> dict[str, Any] | None:
    """Stored defaults as JSON, to be read by `defaults_from`."""
    return None if defaults is None else asdict(defaults)


def defaults_from(record: Mapping[str, Any] | None) -> SearchDefaults | None:
    """Raises KeyError or TypeError for another record."""
    if record is None:
        return None
    weights, candidates = Weights(**record["weights"]), CandidateLimits(**record["candidates"])
    tuning = record["tuning"]
    found = SearchDefaults(weights, candidates, None if tuning is None else Tuning(**tuning))
    confidence = record.get("confidence")
    if confidence is None:
        return found
    coefficients = tuple(confidence["coefficients"])
    return replace(found, confidence=Calibration(**{**confidence, "coefficients": coefficients}))
