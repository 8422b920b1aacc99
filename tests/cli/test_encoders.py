"""Commands open the encoder that a collection names, and say what to give where they cannot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tercet.index.collection import Collection
from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

QUERY = "how is tea made?"


@pytest.fixture
def ours(tmp_path: Path, embedded_checkpoint: Path) -> Path:
    """A checkpoint of the user's own, with another fingerprint than those that come with Tercet."""
    folder = shutil.copytree(embedded_checkpoint, tmp_path / "ours")
    settings = json.loads((folder / "tercet.json").read_text("utf-8"))
    (folder / "tercet.json").write_text(json.dumps({**settings, "query_instruction": "find: "}), "utf-8")
    return folder


@pytest.fixture
def built(tercet: Run, source: Path, ours: Path) -> str:
    """A collection of that checkpoint, whose path was given from the working folder."""
    built = tercet("collection", "build", str(source), "--collection", "small", "--checkpoint", ours.name)
    assert built.returncode == 0, built.stderr
    return "small"


def test_a_collection_says_where_its_encoder_is(
    tercet: Run,
    built: str,
    source: Path,
    data: Path,
    ours: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """From another working folder too, and whatever the environment names for a server."""
    assert Collection.open(data / "collections", built).settings.checkpoint == str(ours)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for command in (
        ("search", built, QUERY),
        ("documents", "put", str(source), "--collection", built),
        ("collection", "build", str(source), "--collection", built),
    ):
        done = tercet(*command, "--data", str(data), TERCET_CHECKPOINT="minilm-m3")
        assert done.returncode == 0, (command, done.stderr)


def test_a_flag_is_an_order(tercet: Run, built: str) -> None:
    refused = tercet("search", built, QUERY, "--checkpoint", "minilm-m3")
    assert refused.returncode == 1
    assert "was built with encoder 'ours'" in refused.stderr


def test_an_encoder_that_was_moved_is_asked_for(tercet: Run, built: str, ours: Path, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    moved = ours.rename(tmp_path / "new" / "ours")
    gone = tercet("search", built, QUERY)
    assert gone.returncode == 1
    assert f"collection '{built}' was built with encoder 'ours', which cannot be opened again" in gone.stderr
    assert "give --checkpoint FOLDER" in gone.stderr
    assert "Traceback" not in gone.stderr
    assert tercet("search", built, QUERY, "--checkpoint", str(moved)).returncode == 0
    assert tercet("search", built, QUERY, TERCET_CHECKPOINT=str(moved)).returncode == 0


def test_a_collection_of_a_shipped_checkpoint_names_no_path(tercet: Run, source: Path, data: Path) -> None:
    """So that its files are the same on each machine."""
    assert (
        tercet(
            "collection", "build", str(source), "--collection", "small", "--checkpoint", "minilm-m3"
        ).returncode
        == 0
    )
    assert "checkpoint" not in (data / "collections" / "small" / "collection.json").read_text("utf-8")
