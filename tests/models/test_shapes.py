"""Checkpoints whose files are of several models: each is refused as it is loaded, and by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import load_file, save_file

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import file_digest, heads_digest
from tercet.models.graphs.record import read_export, write_export
from tercet.models.loader import load_encoder
from tercet.models.weights.head_weights import HeadWeights, LinearHead, write_heads
from tests.models.conftest import write_bert
from tests.tiny.word_pieces import BERT_POSITIONS, BERT_WIDTH, PIECES

GRAPHS = {"native": "model_int8.onnx", "onnxruntime": "model.onnx"}
PRECISIONS = {"native": "int8", "onnxruntime": "float32"}
WORDS, POSITIONS = ("body.embeddings.word_embeddings.weight", "body.embeddings.position_embeddings.weight")
Change = Callable[[Any], Any]


def change_json(path: Path, **values: object) -> None:
    """Sets keys of a JSON object, and leaves out those that are None."""
    former = json.loads(path.read_text()) if path.exists() else {}
    kept = {name: value for name, value in {**former, **values}.items() if value is not None}
    path.write_text(json.dumps(kept))


def change_weights(folder: Path, engine: str, change: Change, *names: str) -> None:
    """Other values of some weights of the graph that an engine takes, and the checksum of the new file."""
    path = folder / "onnx" / GRAPHS[engine]
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if any(tensor.name.startswith(name) for name in names):
            array = np.ascontiguousarray(change(numpy_helper.to_array(tensor)))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    sign(path, model.SerializeToString())


def sign(graph: Path, content: bytes) -> None:
    """Writes a graph, and its checksum into the record of the export."""
    graph.write_bytes(content)
    record = graph.with_name("export.json")
    values = json.loads(record.read_text())
    for described in values["graphs"].values():
        if described["file"] == graph.name:
            described["files"] = {graph.name: file_digest(graph)}
    record.write_text(json.dumps(values))


def load(folder: Path, engine: str) -> Any:
    return load_encoder(str(folder), engine, precision=PRECISIONS[engine], device="cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", GRAPHS)
def test_a_length_beyond_the_positions_is_refused(exported_copy: Path, engine: str) -> None:
    change_json(exported_copy / "config.json", max_position_embeddings=None)
    change_json(exported_copy / "tercet.json", max_length=BERT_POSITIONS)
    longest = encode(load(exported_copy, engine), ["wing " * 100])
    assert (longest.tokens.tolist(), longest.truncated.tolist()) == ([BERT_POSITIONS], [True])
    change_json(exported_copy / "tercet.json", max_length=BERT_POSITIONS + 1)
    with pytest.raises(CheckpointError, match="room for texts of 48 tokens, but max_length is 49; give"):
        load(exported_copy, engine)


@pytest.mark.parametrize("engine", GRAPHS)
def test_a_table_with_too_few_rows_is_refused(exported_copy: Path, engine: str) -> None:
    change_weights(exported_copy, engine, lambda table: table[:-1], WORDS)
    expected = f"{WORDS} has {len(PIECES) - 1} rows, but the tokenizer has {len(PIECES)} tokens"
    with pytest.raises(CheckpointError, match=expected):
        load(exported_copy, engine)


@pytest.mark.parametrize(
    ("change", "names", "message"),
    [
        (
            lambda table: table[:, :16],
            (f"{WORDS}/int8",),
            r"word_embeddings.weight/int8 is int8\[\d+, 16\], but",
        ),
        (
            lambda table: table[:4],
            (f"{WORDS}/scales",),
            r"word_embeddings.weight/scales is float32\[4, 1\], but",
        ),
        (
            lambda table: table.astype(np.float64).astype(np.int64),
            ("body.embeddings.token_type_embeddings.weight/int8",),
            r"token_type_embeddings.weight/int8 is int64\[2, 32\], but the others need int8\[any, 32\]",
        ),
        (
            lambda norm: norm[:8],
            ("body.embeddings.LayerNorm.weight",),
            r"LayerNorm.weight is float32\[8\], but the others need float32\[32\]",
        ),
        (lambda bias: bias[:8], ("val_83/scales",), r"is float32\[8\], but"),
    ],
    ids=range(5),
)
def test_weights_of_other_shapes_are_refused(
    exported_copy: Path, change: Change, names: tuple[str, ...], message: str
) -> None:
    change_weights(exported_copy, "native", change, *names)
    with pytest.raises(CheckpointError, match=message):
        load(exported_copy, "native")


def test_heads_of_another_width_are_refused(exported_copy: Path) -> None:
    heads = HeadWeights(LinearHead(np.ones((1, 16), np.float32), np.ones(1, np.float32)))
    write_heads(exported_copy, heads)
    write_export(exported_copy, replace(read_export(exported_copy), heads=heads_digest(heads.arrays())))
    change_json(exported_copy / "config.json", hidden_size=16)
    with pytest.raises(CheckpointError, match=r"states of 32 values, but sparse.weight has shape \[1, 16\]"):
        load(exported_copy, "native")


def test_positions_that_the_configuration_does_not_name_are_counted(tmp_path: Path) -> None:
    """transformers has 512 where a configuration of BERT's has no number."""
    folder = write_bert(tmp_path / "bert", positions=512)
    change_json(folder / "config.json", max_position_embeddings=None)
    change_json(folder / "tercet.json", max_length=513)
    with pytest.raises(CheckpointError, match="max_length is 513, but the model has positions for 512"):
        load_encoder(str(folder), "torch", device="cpu")


def test_tokens_that_the_configuration_does_not_name_are_counted(bert_copy: Path) -> None:
    """It has 30,522 tokens where a configuration of BERT's has no number."""
    weights = load_file(bert_copy / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    weights[name] = np.resize(weights[name], (30_522, BERT_WIDTH))
    save_file(weights, bert_copy / "model.safetensors", {"format": "pt"})
    change_json(bert_copy / "config.json", vocab_size=None)
    described = json.loads((bert_copy / "tokenizer.json").read_text())
    described["model"]["vocab"]["far"] = 40_000
    (bert_copy / "tokenizer.json").write_text(json.dumps(described))
    with pytest.raises(CheckpointError, match="vectors for 30522 tokens, but the tokenizer has 40001"):
        load_encoder(str(bert_copy), "torch", device="cpu")


@pytest.mark.parametrize("engine", GRAPHS)
def test_what_does_not_encode_a_short_text_is_refused(exported_copy: Path, engine: str) -> None:
    """Values that are not finite, which no shape tells."""
    names = (f"{POSITIONS}/scales",) if engine == "native" else (POSITIONS,)
    change_weights(exported_copy, engine, lambda table: table * np.float32(np.nan), *names)
    with pytest.raises(CheckpointError, match=r"does not encode a short text: .* vector of length nan"):
        load(exported_copy, engine)
