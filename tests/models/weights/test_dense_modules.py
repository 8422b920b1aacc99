"""Dense modules after the pooling, as sentence-transformers has them, against plain torch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tercet.models.encoder import encode
from tercet.models.errors import CheckpointError
from tercet.models.loader import load_encoder
from tercet.models.representations import Float32
from tercet.models.weights.dense_layers import DenseLayer, layer_arrays, layers_from_arrays
from tests.models.conftest import export_both
from tests.tiny.late_folders import IDENTITY, POOLINGS, TANH, Layer, write_pooled
from tests.tiny.word_pieces import BERT_WIDTH

TEXTS = ["hello world", "", "wing, air. heat!", "word " * 40]
# As EmbeddingGemma has them, and as LaBSE and distiluse do.
GEMMA = (Layer(64), Layer(32, 64))
LABSE = (Layer(16, bias=True, activation=TANH),)
CASES = {"gemma": (GEMMA, POOLINGS[1]), "labse": (LABSE, POOLINGS[0])}


def expected(folder: Path, layers: tuple[Layer, ...], pooling: str, text: str) -> Float32:
    from tokenizers import Tokenizer as Library
    from transformers import AutoModel

    ids = Library.from_file(str(folder / "tokenizer.json")).encode(text).ids
    ids = ids if len(ids) <= 24 else [*ids[:23], ids[-1]]
    body = AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = body(torch.tensor([ids])).last_hidden_state[0]
        vector = states[0] if pooling == POOLINGS[0] else states.mean(0)
        for index, layer in enumerate(layers, start=2):
            weights = load_file(folder / f"{index}_Dense" / "model.safetensors")
            vector = weights["linear.weight"] @ vector + weights.get("linear.bias", 0)
            vector = vector if layer.activation == IDENTITY else torch.tanh(vector)
        return (vector / vector.norm()).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_dense_vectors_go_through_the_layers(name: str, tmp_path: Path) -> None:
    layers, pooling = CASES[name]
    folder = write_pooled(tmp_path / "pooled", layers, pooling)
    encoder = load_encoder(str(folder), "torch", device="cpu")
    assert encoder.info.sides == ("dense",)
    assert encoder.info.dense_dimension == layers[-1].rows
    found = encode(encoder, TEXTS).dense
    wanted = np.stack([expected(folder, layers, pooling, text) for text in TEXTS])
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    export_both(folder, tmp_path / "exported", ["hello world"])
    for int8, tolerance in ((False, 1e-5), (True, 0.25)):
        exported = load_encoder(
            str(tmp_path / "exported"), precision="int8" if int8 else "float32", device="cpu"
        )
        assert exported.info.dense_dimension == layers[-1].rows
        assert int8 or exported.info.fingerprint == encoder.info.fingerprint
        np.testing.assert_allclose(encode(exported, TEXTS).dense, wanted, atol=tolerance)


def test_each_part_of_a_layer_is_in_the_fingerprint(tmp_path: Path) -> None:
    folder = write_pooled(tmp_path / "pooled", LABSE)
    first = load_encoder(str(folder), "torch", device="cpu").info.fingerprint
    path = folder / "2_Dense" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "activation_function": IDENTITY}))
    assert load_encoder(str(folder), "torch", device="cpu").info.fingerprint != first


def test_sparse_and_colbert_heads_may_be_beside(tmp_path: Path, bert: Path) -> None:
    folder = write_pooled(tmp_path / "pooled", LABSE)
    (folder / "heads.safetensors").write_bytes((bert / "heads.safetensors").read_bytes())
    info = load_encoder(str(folder), "torch", device="cpu").info
    assert info.sides == ("dense", "sparse", "colbert")
    assert info.dense_dimension == 16


def test_weights_of_torch_are_read_as_plain_weights(tmp_path: Path) -> None:
    folder = write_pooled(tmp_path / "pooled", LABSE)
    wanted = encode(load_encoder(str(folder), "torch", device="cpu"), TEXTS).dense
    path = folder / "2_Dense" / "model.safetensors"
    torch.save(load_file(path), folder / "2_Dense" / "pytorch_model.bin")
    path.unlink()
    found = encode(load_encoder(str(folder), "torch", device="cpu"), TEXTS).dense
    np.testing.assert_array_equal(found, wanted)


def test_an_activation_that_is_left_out_is_the_library_s(tmp_path: Path) -> None:
    """That of sentence-transformers, tanh."""
    folder = write_pooled(tmp_path / "pooled", LABSE)
    wanted = encode(load_encoder(str(folder), "torch", device="cpu"), TEXTS).dense
    path = folder / "2_Dense" / "config.json"
    config = json.loads(path.read_text())
    del config["activation_function"]
    path.write_text(json.dumps(config))
    np.testing.assert_array_equal(
        encode(load_encoder(str(folder), "torch", device="cpu"), TEXTS).dense, wanted
    )


def test_a_layer_of_another_width_is_named(tmp_path: Path) -> None:
    folder = write_pooled(tmp_path / "pooled", (Layer(16, 24),))
    with pytest.raises(CheckpointError, match=r"2_Dense: weight has shape \[16, 24\]; .* needs \[16, 32\]"):
        load_encoder(str(folder), "torch", device="cpu")


def test_layers_as_arrays_and_back() -> None:
    random = np.random.default_rng(3)

    def drawn(*shape: int) -> Float32:
        return random.normal(size=shape).astype(np.float32)

    layers = (
        DenseLayer(drawn(8, BERT_WIDTH), drawn(8), "tanh", drawn(8, BERT_WIDTH)),
        DenseLayer(drawn(8, 8), skip=True),
    )
    arrays = layer_arrays("dense", layers)
    assert sorted(arrays) == [
        *("dense.0.bias", "dense.0.residual", "dense.0.tanh", "dense.0.weight"),
        *("dense.1.skip", "dense.1.weight"),
    ]
    back = layers_from_arrays("dense", arrays, "a file", BERT_WIDTH)
    for one, other in zip(layers, back, strict=True):
        assert (one.activation, one.skip) == (other.activation, other.skip)
        for name in ("weight", "bias", "residual"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    with pytest.raises(CheckpointError, match=r"a file lacks dense\.1\.weight"):
        layers_from_arrays(
            "dense", {name: array for name, array in arrays.items() if name != "dense.1.weight"}, "a file", 32
        )
