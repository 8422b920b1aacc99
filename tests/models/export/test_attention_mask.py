"""Attention with and without a mask in one graph."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from tercet.models.checkpoint import read_settings
from tercet.models.encoder import encode
from tercet.models.encoder_model import load_model
from tercet.models.export_onnx import export, write_graph
from tercet.models.loader import load_encoder
from tests.tiny.families import FAMILIES
from tests.tiny.family import write

MadeOnce = Callable[[str, Callable[[Path], object]], Path]


def branches(graph: onnx.GraphProto) -> list[onnx.GraphProto]:
    return [attribute.g for node in graph.node if node.op_type == "If" for attribute in node.attribute]


def test_every_attention_has_a_twin_without_mask(bert_exported: Path) -> None:
    graph = onnx.load(bert_exported / "onnx" / "model.onnx").graph
    assert all(node.op_type != "MultiHeadAttention" for node in graph.node)
    inputs = [len(node.input) for branch in branches(graph) for node in branch.node]
    assert sorted(inputs) == [3, 3, 5, 5]  # two layers


@pytest.mark.slow
def test_both_branches_give_the_same(bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tercet.models.export.attention_mask.MASKED_TOKENS", 4
    )  # five tokens alone take no mask
    write_graph(load_model(bert, read_settings(bert)), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    ids = np.array([[2, 5, 6, 7, 3, 0], [2, 9, 9, 8, 7, 3]], np.int64)
    mask = (ids != 0).astype(np.int64)
    padded = session.run(None, {"input_ids": ids, "attention_mask": mask})
    alone = session.run(None, {"input_ids": ids[:1, :5], "attention_mask": mask[:1, :5]})
    whole = session.run(None, {"input_ids": ids[1:], "attention_mask": mask[1:]})
    dense, sparse, colbert = padded
    for found, expected in zip((dense[:1], sparse[:1, :5], colbert[:1, :5]), alone, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    for found, expected in zip((dense[1:], sparse[1:], colbert[1:]), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ModernBERT", "EmbeddingGemma"])
def test_windows_by_blocks_give_what_all_pairs_do(name: str, made_once: MadeOnce) -> None:
    """At every length around the choice and the ends of blocks, alone and with padding."""
    family = next(family for family in FAMILIES if family.name == name)
    folder = made_once(f"families/{family.key}", lambda place: write(family, place))
    exported = made_once(f"families-exported/{family.key}", lambda place: export(folder, place, int8=False))
    graph = onnx.load(exported / "onnx" / "model.onnx").graph
    ways = [sorted(node.op_type for node in branch.node) for branch in branches(graph)]
    assert sum("Pad" in way for way in ways) == 1  # one of two layers has a window
    texts = ["a" * count for count in range(1, 50)]
    reference = load_encoder(str(folder), "torch", device="cpu")
    encoder = load_encoder(str(exported), precision="float32", device="cpu")
    wanted, together = (encode(each, texts).dense for each in (reference, encoder))
    np.testing.assert_allclose(together, wanted, atol=1e-5)
    for row, text in enumerate(texts):
        np.testing.assert_allclose(encode(encoder, [text]).dense[0], wanted[row], atol=1e-5)
