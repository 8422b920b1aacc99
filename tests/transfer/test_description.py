"""What exported vectors are described with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tercet.index.windows.settings import WindowSettings
from tercet.ingest.target import settings_for
from tercet.transfer.description import described_settings, settings_record


def test_a_description_is_read_back_and_names_no_place_of_this_machine(tiny: Any) -> None:
    settings = settings_for("x", replace(tiny.info, checkpoint="/somebody/tiny"), {"token_codec": "int8"})
    assert settings.checkpoint == "/somebody/tiny"
    record = settings_record(settings)
    assert "/somebody" not in str(record)
    found, window = described_settings({"format_version": 1, "settings": record}, "x.parquet")
    assert found == settings
    assert window == settings.window == WindowSettings(32, 8)
    assert found.checkpoint is None
