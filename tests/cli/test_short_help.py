"""`--help` of commands with many options."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tercet.service.settings.roles import Panel
from tercet.service.settings.settings import Settings

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("command", [("serve",), ("collection", "build")], ids=" ".join)
def test_help_is_short_and_help_all_has_panels(tercet: Run, command: tuple[str, ...]) -> None:
    shown = tercet(*command, "--help").stdout
    assert len(shown.splitlines()) <= 60
    assert shown.count(f"\n  tercet {' '.join(command)} ") == 2, "examples"
    assert [line for line in shown.splitlines() if line.endswith("options:")] == ["Common options:"]
    every = tercet(*command, "--help-all").stdout
    panels = [line.removesuffix(" options:") for line in every.splitlines() if line.endswith(" options:")]
    assert panels == [panel for panel in Panel if panel in panels]
    assert {"Common", "Encoder", "Cluster", "Logs and health"} <= set(panels)
    assert set(shown.splitlines()) <= set(every.splitlines())


def test_an_option_that_is_not_shown_is_taken(tercet: Run) -> None:
    assert "--shards" not in tercet("collection", "build", "--help").stdout
    done = tercet("collection", "build", "x.jsonl", "--collection", "x", "--shards", "2")
    assert "goes with --output" in done.stderr


def test_every_setting_has_one_panel() -> None:
    for name, field in Settings.model_fields.items():
        assert sum(isinstance(note, Panel) for note in field.metadata) == 1, name
