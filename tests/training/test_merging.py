"""One checkpoint of several: means and task vectors, of weights that a person can follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder
from tercet.models.weights.head_weights import read_heads

torch = pytest.importorskip("torch")

from safetensors.torch import load_file

from tercet.training.errors import ConfigError
from tercet.training.merging import merge_checkpoints, merged

TEXTS = ["word1 word2 word3", "word30 word31", ""]


def tensors(*values: float, whole: int = 3) -> dict[str, torch.Tensor]:
    return {"a": torch.tensor(values), "positions": torch.tensor([whole])}


@pytest.mark.parametrize(
    ("weights", "base", "expected"),
    [
        ([0.5, 0.5], None, [2.0, 3.0]),
        ([1.0, 1.0], (1.0, 1.0), [3.0, 5.0]),  # 1 + (0 - 1) + (4 - 1), 1 + (2 - 1) + (4 - 1)
        ([1.0, -1.0], (1.0, 1.0), [-3.0, -1.0]),
        ([0.0, 0.5], (1.0, 1.0), [2.5, 2.5]),
        ([0.0, 0.0], (1.0, 1.0), [1.0, 1.0]),
    ],
)
def test_by_hand(weights: list[float], base: tuple[float, ...] | None, expected: list[float]) -> None:
    start = None if base is None else tensors(*base)
    found = merged([tensors(0.0, 2.0), tensors(4.0, 4.0)], weights, start)
    assert found["a"].tolist() == expected
    assert found["positions"].tolist() == [3]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": torch.tensor([1.0])}, "tensor a is not in all checkpoints with the same shape"),
        ({}, "tensor a is not in all"),
        (tensors(1.0, 2.0, whole=4), "tensor positions holds whole numbers, and they differ"),
    ],
)
def test_tensors_that_do_not_go_together(other: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        merged([tensors(0.0, 2.0), other], [0.5, 0.5], None)


@pytest.fixture
def trained(run: Callable[..., Any], tmp_path: Path) -> list[Path]:
    """Two runs from one base."""
    run("first", {"optimization.steps": 4})
    run("second", {"optimization.steps": 4, "seed": 6})
    return [tmp_path / "first", tmp_path / "second"]


@pytest.mark.slow
def test_what_is_written_is_served(trained: list[Path], base_folder: Path, tmp_path: Path) -> None:
    """The mean of two, body and heads; with a base without heads the mean of their heads."""
    merge_checkpoints(trained, tmp_path / "mean")
    merge_checkpoints(trained, tmp_path / "sum", base_folder, [1.0, -1.0])
    bodies = [load_file(folder / "model.safetensors") for folder in (*trained, base_folder)]
    first, second, base = (body["encoder.layer.0.output.dense.weight"] for body in bodies)
    mean, difference = (
        load_file(tmp_path / name / "model.safetensors")["encoder.layer.0.output.dense.weight"]
        for name in ("mean", "sum")
    )
    torch.testing.assert_close(mean, (first + second) / 2)
    torch.testing.assert_close(difference, base + first - second)
    heads = [
        read_heads(folder, 16).both()[0].weight for folder in (*trained, tmp_path / "mean", tmp_path / "sum")
    ]
    for head in heads[2:]:
        np.testing.assert_allclose(head, (heads[0] + heads[1]) / 2, rtol=1e-6)
    assert json.loads((tmp_path / "mean" / "tercet.json").read_text())["pooling"] == "mean"
    encoded = encode(load_encoder(str(tmp_path / "mean"), "torch"), TEXTS)
    assert encoded.sparse is not None
    assert encoded.colbert is not None
    # One checkpoint alone, wholly, is itself.
    merge_checkpoints(trained[:1], tmp_path / "same", trained[1], [1.0])
    same, own = (
        encode(load_encoder(str(at), "torch"), TEXTS).dense for at in (tmp_path / "same", trained[0])
    )
    assert same is not None
    assert own is not None
    np.testing.assert_allclose(same, own, atol=1e-5)


@pytest.mark.slow
def test_what_is_refused(trained: list[Path], tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="1 weights were given for 2 checkpoints"):
        merge_checkpoints(trained, tmp_path / "no", weights=[1.0])
    with pytest.raises(CheckpointError, match=r"sum to 1\.5; without a base they must sum to 1"):
        merge_checkpoints(trained, tmp_path / "no", weights=[1.0, 0.5])
    with pytest.raises(CheckpointError, match=r"weights are nan, 1\.0; give numbers"):
        merge_checkpoints(trained, tmp_path / "no", trained[0], [float("nan"), 1.0])
    with pytest.raises(CheckpointError, match="exists; name a new folder"):
        merge_checkpoints(trained, trained[0])
    settings = trained[1] / "tercet.json"
    settings.write_text(settings.read_text().replace('"mean"', '"cls"'))
    with pytest.raises(CheckpointError, match=r"second has another pooling than .*first"):
        merge_checkpoints(trained, tmp_path / "no")
    tokenizer = trained[1] / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + " ")
    with pytest.raises(CheckpointError, match="second has another tokenizer"):
        merge_checkpoints(trained[:1], tmp_path / "no", trained[1])
    settings.write_text('{"splade": {}, "max_length": 32}')
    with pytest.raises(ConfigError, match=r"second: its lexical weights are by SPLADE"):
        merge_checkpoints(trained[1:], tmp_path / "no")
    assert not (tmp_path / "no").exists()
    assert not list(tmp_path.glob(".no*"))


@pytest.mark.slow
def test_nothing_is_left_of_a_merge_that_fails_while_it_is_written(
    trained: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: Path, *_: object, **__: object) -> None:
        folder.mkdir()
        (folder / "config.json").write_text("{}")
        raise OSError("the disk is full")

    monkeypatch.setattr("tercet.training.merging.write_checkpoint", fail)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        merge_checkpoints(trained, tmp_path / "no")
    assert sorted(tmp_path.iterdir()) == before
