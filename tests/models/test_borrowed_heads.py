"""A checkpoint with the heads of another: forks that lost theirs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS
from tercet.models.weights.head_weights import HeadWeights, LinearHead, read_heads, write_heads
from tests.models.conftest import write_bert
from tests.tiny.late_folders import write_pylate

TEXTS = ["hello world", "wing, air. heat!"]


@pytest.fixture
def fork(bert: Path, tmp_path: Path) -> Path:
    """The tiny BERT without its heads."""
    folder = Path(shutil.copytree(bert, tmp_path / "fork"))
    (folder / "heads.safetensors").unlink()
    return folder


def test_a_fork_with_the_heads_of_its_origin_is_the_origin(bert: Path, fork: Path) -> None:
    origin = load_encoder(str(bert), "torch", device="cpu")
    lent = load_encoder(str(fork), "torch", heads=str(bert), device="cpu")
    assert load_encoder(str(fork), "torch", device="cpu").info.sides == ("dense",)
    assert lent.info.sides == OUTPUTS
    assert lent.info.fingerprint == origin.info.fingerprint
    wanted, found = encode(origin, TEXTS), encode(lent, TEXTS)
    assert wanted.colbert is not None
    assert found.colbert is not None
    np.testing.assert_array_equal(found.colbert.vectors, wanted.colbert.vectors)


def test_what_is_recorded_opens_it_again(bert: Path, fork: Path) -> None:
    lent = load_encoder(str(fork), "torch", heads=str(bert), device="cpu")
    assert lent.info.name == "fork"
    assert lent.info.checkpoint == f"{fork} with heads of {bert}"
    again = load_encoder(lent.info.checkpoint, "torch", device="cpu")
    assert again.info == lent.info


@pytest.mark.slow
def test_an_export_has_them(bert: Path, fork: Path, tmp_path: Path) -> None:
    export(fork, tmp_path / "exported", int8=False, heads_of=bert)
    exported = load_encoder(str(tmp_path / "exported"), device="cpu")
    assert exported.info.sides == OUTPUTS
    named = load_encoder(str(tmp_path / "exported"), heads=str(bert), device="cpu")
    assert named.info.fingerprint == exported.info.fingerprint
    wanted, found = encode(load_encoder(str(bert), "torch", device="cpu"), TEXTS), encode(exported, TEXTS)
    assert wanted.colbert is not None
    assert found.colbert is not None
    np.testing.assert_allclose(found.colbert.vectors, wanted.colbert.vectors, atol=1e-5)


def test_a_graph_with_other_heads_says_how_to_get_these(
    bert_exported: Path, fork: Path, tmp_path: Path
) -> None:
    other = write_bert(tmp_path / "other")
    heads = read_heads(other, 32)
    assert heads.colbert is not None
    heads.colbert.bias[:] += 1
    write_heads(other, heads)
    for folder in (bert_exported, fork):
        with pytest.raises(CheckpointError, match=r"no graph exported with the heads of .*--heads HEADS"):
            load_encoder(str(folder), heads=str(other), device="cpu")


def test_heads_of_another_width_or_of_none(fork: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide"
    wide.mkdir()
    write_heads(wide, HeadWeights(LinearHead(np.ones((1, 64), np.float32), np.ones(1, np.float32))))
    message = rf"the heads of {wide} are for states of width 64, and {fork} has width 32"
    with pytest.raises(CheckpointError, match=message):
        load_encoder(str(fork), "torch", heads=str(wide), device="cpu")
    (tmp_path / "bare").mkdir()
    with pytest.raises(CheckpointError, match="bare has no heads to borrow"):
        load_encoder(str(fork), "torch", heads=str(tmp_path / "bare"), device="cpu")
    with pytest.raises(CheckpointError, match="'not-there' is neither"):
        load_encoder(str(fork), "torch", heads="not-there", device="cpu")


def test_one_side_may_be_lent(fork: Path, bert: Path, tmp_path: Path) -> None:
    (tmp_path / "sparse").mkdir()
    write_heads(tmp_path / "sparse", HeadWeights(read_heads(bert, 32).sparse))
    encoder = load_encoder(str(fork), "torch", heads=str(tmp_path / "sparse"), device="cpu")
    assert encoder.info.sides == ("dense", "sparse")


def test_an_encoder_of_colbert_s_kind_borrows_none(bert: Path, tmp_path: Path) -> None:
    folder = write_pylate(tmp_path / "late")
    with pytest.raises(CheckpointError, match="with markers or expansion"):
        load_encoder(str(folder), "torch", heads=str(bert), device="cpu")


def test_heads_of_torch_files_take_torch(
    fork: Path, golden: Path, bert_exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tercet.models.heads", None)
    with pytest.raises(UnsupportedError, match=r"takes torch .*`tercet export` alone"):
        load_encoder(str(bert_exported), heads=str(golden / "checkpoint"), device="cpu")
