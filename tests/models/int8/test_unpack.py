"""A body from its int8 graph: as near as 8 bits allow, the same after another round, and one fingerprint."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from tercet.models.encoder_model import load_body
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.export_onnx import export
from tercet.models.graphs.record import FOLDER, GRAPH_FILES
from tercet.models.int8.quantize import EMBEDDING_LEVELS, WEIGHT_LEVELS
from tercet.models.int8.unpack import unpacked_weights
from tercet.models.loader import load_encoder

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT with biases that differ, as training makes them: an export stores equal ones once."""
    folder = tmp_path_factory.mktemp("trained") / "model"
    shutil.copytree(bert, folder)
    random = np.random.default_rng(7)
    weights = load_file(folder / "model.safetensors")
    for name, values in weights.items():
        if values.ndim == 1:
            weights[name] = values + random.normal(0, 0.02, values.shape).astype(np.float32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def packed(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that is an int8 graph alone."""
    folder = tmp_path_factory.mktemp("packed") / "model"
    export(trained, folder, int8=True)
    assert not (folder / "model.safetensors").exists()
    return folder


def graph_of(folder: Path) -> Path:
    return folder / FOLDER / GRAPH_FILES["int8"]


def test_every_weight_is_within_half_a_step_of_the_original(trained: Path, packed: Path) -> None:
    unpacked = unpacked_weights(graph_of(packed))
    original = {name: p.detach().numpy() for name, p in load_body(trained).named_parameters()}
    assert set(unpacked) == set(original)
    for name, values in original.items():
        if values.ndim == 1:
            np.testing.assert_array_equal(unpacked[name], values)
            continue
        levels = EMBEDDING_LEVELS if "embeddings" in name else WEIGHT_LEVELS
        step = np.abs(values).max(axis=1, keepdims=True) / levels
        assert (np.abs(unpacked[name] - values) <= 0.501 * step).all(), name


def test_a_table_of_4_bit_blocks_comes_back_as_it_was(trained: Path, tmp_path: Path) -> None:
    weights = load_file(trained / "model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    rows, width = weights[name].shape
    numbers = np.random.default_rng(5).integers(-8, 8, (rows, width))
    weights[name] = numbers.astype(np.float32) * np.float32(0.0625)
    shutil.copytree(trained, tmp_path / "blocks")
    save_file(weights, tmp_path / "blocks" / "model.safetensors", metadata={"format": "pt"})
    export(tmp_path / "blocks", tmp_path / "packed", int8=True)
    unpacked = unpacked_weights(graph_of(tmp_path / "packed"))
    np.testing.assert_array_equal(unpacked[name.removeprefix("bert.")], weights[name])


def test_quantizing_again_changes_nothing(packed: Path, tmp_path: Path) -> None:
    export(packed, tmp_path / "again", int8=True)
    first, second = unpacked_weights(graph_of(packed)), unpacked_weights(graph_of(tmp_path / "again"))
    for name, values in first.items():
        np.testing.assert_allclose(second[name], values, rtol=1e-6, atol=1e-9)


def test_the_torch_engine_opens_it_with_the_fingerprint_of_its_graph(packed: Path) -> None:
    ours, graph = load_encoder(str(packed), "torch", device="cpu"), load_encoder(str(packed), "onnx")
    assert ours.info.fingerprint == graph.info.fingerprint
    body = load_body(packed)
    weights = unpacked_weights(graph_of(packed))
    for name, parameter in body.named_parameters():
        torch.testing.assert_close(parameter.detach(), torch.from_numpy(weights[name]), rtol=0, atol=0)


def test_a_float32_graph_of_8_bit_weights_is_refused(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="--int8"):
        export(packed, tmp_path / "float", int8=False)


def test_a_changed_graph_is_refused(packed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(packed, folder)
    with graph_of(folder).open("ab") as file:
        file.write(b"x")
    with pytest.raises(CheckpointError, match="damaged"):
        load_body(folder)


def test_what_is_no_graph_is_named(tmp_path: Path) -> None:
    path = tmp_path / "graph.onnx"
    path.write_bytes(b"no graph")
    with pytest.raises(CheckpointError, match=r"graph\.onnx"):
        unpacked_weights(path)
