"""The heads against the formulas, in NumPy, and what a missing head says."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from tercet.models.checkpoint import EncodingSettings, read_settings
from tercet.models.encoder import encode
from tercet.models.encoder_model import load_body
from tercet.models.errors import CheckpointError
from tercet.models.export_verification import largest_differences
from tercet.models.heads import cls_positions, load_heads, pool
from tercet.models.loader import load_encoder
from tercet.models.representations import OUTPUTS
from tercet.models.weights.head_weights import HeadWeights, read_heads, write_heads

HIDDEN = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [99.0, 99.0]]])
MASK = torch.tensor([[1, 1, 1, 0]])


def test_pooling_by_hand() -> None:
    assert pool(HIDDEN, MASK, EncodingSettings(pooling="cls")).tolist() == [[1.0, 2.0]]
    assert pool(HIDDEN, MASK, EncodingSettings(pooling="mean")).tolist() == [[3.0, 4.0]]


def test_mcls_pools_the_cls_states_but_not_the_last_token() -> None:
    # Nine tokens, a CLS at positions 0 and 4; position 8 holds the last special token.
    mask = torch.tensor([[1] * 9, [1] * 5 + [0] * 4])
    assert cls_positions(mask, 4).nonzero().tolist() == [[0, 0], [0, 4], [1, 0]]
    hidden = torch.arange(18, dtype=torch.float32).reshape(2, 9, 1)
    pooled = pool(hidden, mask, EncodingSettings(mcls_every=4))
    assert pooled.tolist() == [[2.0], [9.0]]


def test_the_encoder_follows_the_formulas(bert: Path) -> None:
    text = "hello heat of the heat"
    encoder = load_encoder(str(bert), "torch", device="cpu")
    batch = encoder.tokenizer.tokenize([text])
    ids, mask = batch.padded(encoder.tokenizer.pad_id)
    with torch.inference_mode():
        body = load_body(bert)
        hidden = body(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask)).last_hidden_state
    states = hidden[0].numpy()
    sparse, colbert = read_heads(bert, states.shape[1]).both()
    found = encode(encoder, [text])

    mean = states.mean(0)
    np.testing.assert_allclose(found.dense[0], mean / np.linalg.norm(mean), atol=1e-5)

    weights = np.maximum(states @ sparse.weight[0] + sparse.bias[0], 0)
    expected: dict[int, float] = {}
    for token, weight in zip(batch.token_ids.tolist(), weights.tolist(), strict=True):
        if weight > 0 and token not in encoder.tokenizer.special_ids:
            expected[token] = max(weight, expected.get(token, 0.0))
    token_ids, kept = found.sparse.row(0)
    assert token_ids.tolist() == sorted(expected)
    np.testing.assert_allclose(kept, [expected[token] for token in sorted(expected)], atol=1e-5)
    assert expected, "the test needs at least one weight above 0"

    vectors = states[1:] @ colbert.weight.T + colbert.bias
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(found.colbert.row(0), vectors, atol=1e-5)


@pytest.mark.parametrize("side", ["sparse", "colbert"])
def test_a_checkpoint_without_a_head_lacks_that_side_alone(golden: Path, tmp_path: Path, side: str) -> None:
    folder = Path(shutil.copytree(golden / "checkpoint", tmp_path / "checkpoint"))
    (folder / f"{side}_linear.pt").unlink()
    encoder = load_encoder(str(folder), "torch", device="cpu")
    assert encoder.info.sides == tuple(one for one in OUTPUTS if one != side)
    whole = encode(load_encoder(str(golden / "checkpoint"), "torch", device="cpu"), ["a text", ""])
    found = encode(encoder, ["a text", ""])
    assert getattr(found, side) is None
    assert not any(largest_differences(found, whole).values())


def test_a_head_of_another_width_is_refused(bert_copy: Path) -> None:
    with pytest.raises(
        CheckpointError, match=r"sparse\.weight has shape \(1, 32\); the model needs \(1, 64\)"
    ):
        load_heads(bert_copy, 64, EncodingSettings())


def test_another_colbert_dimension_than_promised(bert_copy: Path) -> None:
    with pytest.raises(CheckpointError, match="says colbert_dimension 99, but the head gives 16"):
        load_heads(bert_copy, 32, EncodingSettings(colbert_dimension=99))


def test_the_onnx_engine_refuses_another_colbert_dimension(exported_copy: Path) -> None:
    settings = exported_copy / "tercet.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "colbert_dimension": 99}))
    with pytest.raises(CheckpointError, match="says colbert_dimension 99, but the head gives 16"):
        load_encoder(str(exported_copy), "onnx", device="cpu")


def tensors(dtype: str, shape: list[int], size: int) -> bytes:
    """A safetensors file of one tensor."""
    header = json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


@pytest.mark.parametrize(
    "content",
    [
        b"nothing",
        tensors("F32", [1] * 65, 4),  # more dimensions than NumPy has
        tensors("F8_E4M3", [4], 4),  # a type that it does not have
    ],
)
def test_damaged_heads(bert_copy: Path, content: bytes) -> None:
    (bert_copy / "heads.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"heads\.safetensors cannot be read"):
        read_heads(bert_copy, 32)


def test_a_pickle_with_code_is_refused(golden: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(golden / "checkpoint", tmp_path / "checkpoint"))
    torch.save(torch.nn.Linear(32, 1), folder / "sparse_linear.pt")
    with pytest.raises(CheckpointError, match="cannot be read as plain weights"):
        load_heads(folder, 32, read_settings(folder))


def test_a_head_under_other_names_is_refused(golden: Path, bert_copy: Path, tmp_path: Path) -> None:
    """It would leave its side out without a word."""
    folder = Path(shutil.copytree(golden / "checkpoint", tmp_path / "checkpoint"))
    torch.save({"linear.weight": torch.zeros(1, 32)}, folder / "sparse_linear.pt")
    with pytest.raises(
        CheckpointError, match=r"sparse_linear\.pt holds \['linear\.weight'\]; a head has weight"
    ):
        load_heads(folder, 32, read_settings(folder))
    save_file({"sparse_linear.weight": np.zeros((1, 32), np.float32)}, bert_copy / "heads.safetensors")
    with pytest.raises(CheckpointError, match=r"heads\.safetensors holds \['sparse_linear\.weight'\]"):
        read_heads(bert_copy, 32)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(value: float) -> None:
    """relu(NaN) > 0 is false: all texts would have no lexical weights."""
    arrays = {"sparse.weight": np.full((1, 4), value, np.float32), "sparse.bias": np.zeros(1, np.float32)}
    with pytest.raises(CheckpointError, match=r"here: sparse\.weight has values that are not finite numbers"):
        HeadWeights.from_arrays(arrays, "here", 4)
    layer = {"dense.0.weight": np.full((2, 4), value, np.float32)}
    with pytest.raises(CheckpointError, match=r"here: dense\.0: weight has values that are not finite"):
        HeadWeights.from_arrays(layer, "here", 4)


def test_both_file_layouts_give_the_same_fingerprint(golden: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(golden / "checkpoint", tmp_path / "checkpoint"))
    write_heads(folder, load_heads(folder, 32, EncodingSettings()).weights())
    for name in ("sparse_linear.pt", "colbert_linear.pt"):
        (folder / name).unlink()
    one = load_encoder(str(folder), "torch", device="cpu")
    other = load_encoder(str(golden / "checkpoint"), "torch", device="cpu")
    assert one.info.fingerprint == other.info.fingerprint


def test_a_missing_tensor_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"here lacks \['sparse\.bias'\]"):
        HeadWeights.from_arrays({"sparse.weight": np.zeros((1, 4), np.float32)}, "here", 4)
