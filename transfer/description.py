"""What exported vectors are: of which encoder, and how their collection keeps and scores them.

The record travels with the vectors, so that they can be read back and no others are taken for them:

    {"format_version": 1, "snapshot": "000007", "documents": 1398, "settings": {as in collection.json},
     "window": {"tokens": 512, "overlap": 128}}

`window` is the collection's. The settings have it only where a document has several: otherwise the documents
travel as those of a collection without windows, whose shape in other systems is a simpler one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings, settings_of_record
from tercet.index.errors import DamagedIndexError
from tercet.index.snapshot import Snapshot
from tercet.index.token_codecs import RESIDUAL_BITS
from tercet.index.windows.settings import WindowSettings
from tercet.index.wording import shown
from tercet.ingest.errors import SourceError

FORMAT_VERSION = 1
KEY = "tercet"


def description_of(snapshot: Snapshot, documents: int) -> dict[str, Any]:
    """The record of a snapshot of which so many documents are exported."""
    window = snapshot.settings.window
    return {
        "format_version": FORMAT_VERSION,
        "snapshot": snapshot.name,
        "documents": documents,
        "settings": settings_record(snapshot.undivided().settings),
        "window": None if window is None else asdict(window),
    }


def settings_record(settings: CollectionSettings) -> dict[str, Any]:
    """What vectors are described with; those of a residual codec travel without their codebook, and none with
    a place of this machine.
    """
    settings = replace(settings, checkpoint=None)
    if settings.token_codec in RESIDUAL_BITS:
        settings = replace(settings, token_codec="int8", codebook=None)  # noqa: S106  # a codec, no secret
    record: dict[str, Any] = orjson.loads(settings.of_new_collection(settings.name).content)
    record.pop("codebook", None)  # that of sign follows from its dimension
    return record


def described_settings(record: object, origin: str) -> tuple[CollectionSettings, WindowSettings | None]:
    """The settings in a record, and the collection's windows. Raises SourceError where there are none that
    can be read; origin: for it.
    """
    if not isinstance(record, Mapping):
        raise SourceError(
            f"{origin} does not say which encoder its vectors are of: only what tercet collection export "
            "wrote is read; build from its texts, which are then encoded"
        )
    if record.get("format_version") != FORMAT_VERSION or not isinstance(record.get("settings"), dict):
        raise SourceError(
            f"{origin} was exported in format version {shown(record.get('format_version'))}; this release "
            f"reads version {FORMAT_VERSION}: export it again"
        )
    try:
        settings = settings_of_record(Record(record["settings"], Path("its description"), "export it again"))
        window = record.get("window")  # of exports before there was this key the settings have it
        return settings, settings.window if window is None else WindowSettings(**window)
    except (DamagedIndexError, ValueError, TypeError) as error:
        raise SourceError(f"{origin}: the description of its vectors cannot be read ({error})") from error
