"""`tercet collection`, and what is left of `tercet index`."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_group

from tercet.cli.collection.group import COMMANDS, FORMER, app, former

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_former_name_leads_to_the_same_function() -> None:
    now, before = get_group(app).commands, get_group(former).commands
    assert set(now) == {*COMMANDS, "alias"}
    assert set(before) == {*FORMER, "alias"}
    for name in set(FORMER) - {"inspect"}:
        assert FORMER[name] is COMMANDS[name]
    assert FORMER["inspect"] is COMMANDS["show"]
    assert not set(COMMANDS) & {"inspect"}


def test_the_former_name_is_not_in_the_help(tercet: Run) -> None:
    assert "\n  index " not in tercet("--help").stdout
    assert "former name of `tercet collection`" in tercet("index", "--help").stdout


@pytest.mark.slow
def test_collections_are_listed_and_deleted(tercet: Run, built: Path) -> None:
    assert "small  4 documents" in tercet("collection", "list").stdout
    listed = json.loads(tercet("collection", "list", "--json").stdout)
    assert [row["name"] for row in listed["collections"]] == ["small"]
    assert tercet("collection", "alias", "put", "shelf", "small").returncode == 0
    assert "alias" in tercet("collection", "delete", "small", "--yes").stderr
    assert tercet("collection", "alias", "delete", "shelf").returncode == 0
    done = tercet("collection", "delete", "small", "--yes")
    assert (done.returncode, done.stdout) == (0, "Collection 'small' is deleted.\n")
    assert "There are no collections" in tercet("collection", "list").stdout
    assert "does not exist" in tercet("collection", "delete", "small", "--yes").stderr


@pytest.mark.slow
def test_nothing_is_deleted_without_a_yes(tercet: Run, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert tercet("collection", "delete", "small").returncode == 1
    assert "small" in tercet("collection", "list").stdout
