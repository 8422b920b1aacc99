"""`--heads`: the heads of another checkpoint, which the collection records and later commands find again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tercet.index.collection import Collection
from tercet.models.weights.head_weights import HeadWeights, LinearHead, write_heads
from tests.cli.conftest import Run

pytest.importorskip("torch", reason="to read heads takes torch: install tercet[torch]")

QUERY = "how is tea made?"


@pytest.fixture
def fork(tmp_path: Path, embedded_checkpoint: Path) -> Path:
    """A folder that was exported with the heads of the checkpoint that comes with Tercet."""
    return Path(shutil.copytree(embedded_checkpoint, tmp_path / "fork"))


@pytest.mark.slow
def test_a_collection_records_whose_heads_its_encoder_has(
    tercet: Run, source: Path, data: Path, fork: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = ("collection", "build", str(source), "--collection", "small", "--checkpoint", fork.name)
    built = tercet(*build, "--heads", "minilm-m3")
    assert built.returncode == 0, built.stderr
    recorded = Collection.open(data / "collections", "small").settings.checkpoint
    assert recorded == f"{fork} with heads of minilm-m3"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for command in (
        ("search", "small", QUERY),
        ("documents", "put", str(source), "--collection", "small"),
        ("search", "small", QUERY, "--checkpoint", str(fork), "--heads", "minilm-m3"),
    ):
        done = tercet(*command, "--data", str(data))
        assert done.returncode == 0, (command, done.stderr)
    doctor = tercet("doctor", "--data", str(data), TERCET_CHECKPOINT="multi-m3")
    assert "which is opened when it is searched" in " ".join(doctor.stdout.split())


def test_the_environment_may_name_them(tercet: Run, source: Path, data: Path, fork: Path) -> None:
    build = ("collection", "build", str(source), "--collection", "small")
    done = tercet(*build, TERCET_CHECKPOINT=str(fork), TERCET_HEADS="minilm-m3")
    assert done.returncode == 0, done.stderr
    recorded = Collection.open(data / "collections", "small").settings.checkpoint
    assert recorded == f"{fork} with heads of minilm-m3"


def test_heads_that_do_not_fit_are_one_line(tercet: Run, source: Path, fork: Path, tmp_path: Path) -> None:
    (tmp_path / "wide").mkdir()
    write_heads(
        tmp_path / "wide", HeadWeights(LinearHead(np.ones((1, 64), np.float32), np.ones(1, np.float32)))
    )
    for command in (
        (
            "collection",
            "build",
            str(source),
            "--collection",
            "x",
            "--checkpoint",
            str(fork),
            "--heads",
            "wide",
        ),
        ("export", str(fork), "--heads", "wide", "--int8", "--output", "exported"),
    ):
        refused = tercet(*command)
        assert refused.returncode == 1
        assert "are for states of width 64, and" in refused.stderr
        assert "has width 384" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_heads_and_an_adapter_are_not_exported_together(tercet: Run, fork: Path) -> None:
    refused = tercet("export", str(fork), "--heads", "minilm-m3", "--adapter", "law")
    assert refused.returncode == 2
    assert "--heads" in refused.stderr
