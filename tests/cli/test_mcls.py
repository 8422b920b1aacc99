"""`--mcls-every`: several CLS in a text, which a collection records and later commands find again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tercet.index.collection import Collection
from tests.cli.conftest import Run

pytest.importorskip("torch", reason="the shipped graph has one CLS: install tercet[torch]")

ON_TORCH = ("--engine", "torch", "--mcls-every", "8")


@pytest.mark.slow
def test_a_collection_records_it_and_takes_no_other_vectors(
    tercet: Run, source: Path, data: Path, tmp_path: Path, embedded_checkpoint: Path
) -> None:
    own = Path(shutil.copytree(embedded_checkpoint, tmp_path / "own"))
    built = tercet(
        "collection", "build", str(source), "--collection", "small", "--checkpoint", "own", *ON_TORCH
    )
    assert built.returncode == 0, built.stderr
    recorded = Collection.open(data / "collections", "small").settings.checkpoint
    assert recorded == f"{own} with a CLS every 8 tokens"
    for command in (
        ("search", "small", "how is tea made?", "--engine", "torch"),
        ("documents", "put", str(source), "--collection", "small", "--engine", "torch"),
        ("search", "small", "how is tea made?", "--checkpoint", "own", *ON_TORCH),
    ):
        done = tercet(*command)
        assert done.returncode == 0, (command, done.stderr)
    for other in ((), ("--mcls-every", "16")):
        refused = tercet("search", "small", "tea", "--engine", "torch", "--checkpoint", "own", *other)
        assert refused.returncode == 1
        assert "was built with encoder" in refused.stderr


def test_a_graph_without_it_is_one_line(tercet: Run, source: Path) -> None:
    refused = tercet("collection", "build", str(source), "--collection", "x", TERCET_MCLS_EVERY="8")
    assert refused.returncode == 1
    assert "tercet export CHECKPOINT --mcls-every 8 --output FOLDER" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("export", "minilm-m3", "--mcls-every", "8", "--adapter", "law"),
        ("export", "minilm-m3", "--mcls-every", "3", "--output", "x"),
        ("eval", "judged", "--mcls-every", "many"),
        ("serve", "--mcls-every", "2"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_is_wrong_usage(tercet: Run, command: tuple[str, ...]) -> None:
    refused = tercet(*command)
    assert refused.returncode == 2
    assert "mcls" in refused.stderr
