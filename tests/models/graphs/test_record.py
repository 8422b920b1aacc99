"""Exported graphs that are missing, damaged or out of step with their folder are refused by name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.graphs.record import choose_graph, read_export
from tercet.models.loader import load_encoder
from tercet.models.weights.head_weights import read_heads, write_heads


def load(folder: Path, precision: str | None = None) -> None:
    load_encoder(str(folder), precision=precision, device="cpu")


@pytest.mark.parametrize("position", [0, 1000, -1])
def test_one_flipped_bit_in_a_graph(exported_copy: Path, position: int) -> None:
    path = exported_copy / "onnx" / "model_int8.onnx"
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model_int8\.onnx is damaged or was changed"):
        load(exported_copy)
    load(exported_copy, "float32")


def test_a_missing_graph(exported_copy: Path) -> None:
    (exported_copy / "onnx" / "model.onnx").unlink()
    with pytest.raises(CheckpointError, match=r"onnx/model\.onnx is missing"):
        load(exported_copy, "float32")


def test_no_export(bert: Path) -> None:
    with pytest.raises(CheckpointError, match=r"export\.json is missing.*tercet export"):
        load(bert)


@pytest.mark.parametrize("change", [{"format": 99}, {"graphs": 3}, {"graphs": {"int8": {"name": "x"}}}])
def test_an_export_record_not_understood(exported_copy: Path, change: dict[str, object]) -> None:
    path = exported_copy / "onnx" / "export.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=r"export\.json"):
        load(exported_copy)


def test_a_record_cannot_name_a_file_elsewhere(exported_copy: Path) -> None:
    path = exported_copy / "onnx" / "export.json"
    values = json.loads(path.read_text())
    values["graphs"]["int8"]["files"]["../heads.safetensors"] = "0"
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="is missing"):
        load(exported_copy)


def test_settings_changed_after_the_export(exported_copy: Path) -> None:
    (exported_copy / "tercet.json").write_text(json.dumps({"pooling": "cls"}))
    with pytest.raises(CheckpointError, match=r"exported with pooling 'mean'.*says 'cls'"):
        load(exported_copy)


def test_heads_changed_after_the_export(exported_copy: Path) -> None:
    heads = read_heads(exported_copy, 32)
    assert heads.sparse is not None
    write_heads(exported_copy, replace(heads, sparse=replace(heads.sparse, weight=heads.sparse.weight * 2)))
    with pytest.raises(CheckpointError, match="heads beside it were changed"):
        load(exported_copy)


def test_int8_on_a_cpu_and_float32_on_cuda_by_default(bert_exported: Path) -> None:
    export = read_export(bert_exported)
    assert choose_graph(export, None, "cpu")[0] == "int8"
    assert choose_graph(export, None, "cuda")[0] == "float32"
    with pytest.raises(
        UnsupportedError, match=r"'float16' has no exported graph; there is \['float32', 'int8'\]"
    ):
        choose_graph(export, "float16", "cpu")
