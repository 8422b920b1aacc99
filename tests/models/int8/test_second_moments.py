"""Second moments of what flows through a graph, by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tercet.models.int8 import second_moments as module
from tercet.models.int8.quantize import quantize
from tercet.models.int8.second_moments import second_moments

TABLE = np.array([[1, 0, 2], [0, 1, 0], [1, 1, 1]], np.float32)
WEIGHTS = np.array([[1, 0], [0, 2], [1, 1]], np.float32)
TEXTS = [np.array([0, 1], np.int32), np.array([2], np.int32)]


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Rows of a table, times a matrix, times another."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["x"]),
        helper.make_node("MatMul", ["x", "first"], ["y"]),
        helper.make_node("MatMul", ["y", "second"], ["z"]),
    ]
    arrays = {"table": TABLE, "first": WEIGHTS, "second": np.eye(2, dtype=np.float32)}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["batch", "tokens", 2])]
    made = helper.make_graph(
        nodes, "graph", inputs, outputs, [numpy_helper.from_array(a, name) for name, a in arrays.items()]
    )
    path = tmp_path / "graph.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.mark.parametrize("most_bytes", [1, 1 << 30])
def test_moments_are_sums_over_the_tokens_of_all_texts(
    graph: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """In one pass or in several."""
    monkeypatch.setattr(module, "MOST_BYTES", most_bytes)
    found = second_moments(graph, {"x": 3, "y": 2}, TEXTS)
    np.testing.assert_array_equal(found["x"], TABLE.T @ TABLE)
    products = TABLE @ WEIGHTS
    np.testing.assert_array_equal(found["y"], products.T @ products)
    assert [path.name for path in graph.parent.iterdir()] == [graph.name]


def test_texts_are_part_of_what_identifies_a_graph(graph: Path, tmp_path: Path) -> None:
    """Its integers lie in a file of their own, and those of one graph and the same texts are the same."""
    files = []
    for name, texts in (("plain", []), ("by texts", TEXTS), ("again", TEXTS), ("by one", TEXTS[:1])):
        path = tmp_path / name / "graph.onnx"
        path.parent.mkdir()
        quantize(graph, path, texts)
        kinds = [node.op_type for node in onnx.load(path).graph.node]
        assert kinds.count("MatMulIntegerToFloat") == 2
        files.append((path.read_bytes(), path.with_name("graph.onnx.data").read_bytes()))
    plain, by_texts, again, by_one = files
    assert by_texts == again
    assert plain[0] != by_texts[0]
    assert (by_texts[0] != by_one[0]) == (by_texts[1] != by_one[1])
