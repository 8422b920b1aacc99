"""The int8 rewriting of a graph, checked by hand on one product and one table."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from tercet.models.int8.quantize import WEIGHT_LEVELS, quantize, quantize_rows


def test_rows_by_hand() -> None:
    integers, scales = quantize_rows(np.array([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]], np.float32), 4)
    np.testing.assert_allclose(scales[0], [0.5])
    assert integers.tolist() == [[2, -4, 1], [0, 0, 0]]


def one_product(tmp_path: Path, weights: np.ndarray, table: np.ndarray, bias: str) -> Path:
    """A graph: y = table[ids] · weights + bias, with the given name for the bias."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "weights"], ["product"]),
        helper.make_node("Add", ["product", bias], ["y"]),
    ]
    tensors = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(weights, "weights"),
        numpy_helper.from_array(np.zeros(weights.shape[1], np.float32), bias),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "tokens", weights.shape[1]])],
        tensors,
    )
    path = tmp_path / "source.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


@pytest.fixture
def arrays() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    return random.normal(size=(64, 24)).astype(np.float32), random.normal(size=(10, 64)).astype(np.float32)


def run(path: Path, ids: list[list[int]]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {"ids": np.array(ids, np.int64)})[0]


def test_a_product_is_close_and_rows_do_not_depend_on_their_batch(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    weights, table = arrays
    table[9] *= 1000  # a large row beside others must not coarsen theirs
    target = tmp_path / "int8.onnx"
    quantize(one_product(tmp_path, weights, table, "bias"), target)
    expected = table @ weights
    together = run(target, [[0, 1, 2, 9]])[0]
    for row, index in enumerate((0, 1, 2, 9)):
        error = np.linalg.norm(together[row] - expected[index]) / np.linalg.norm(expected[index])
        assert error < 0.02
        np.testing.assert_array_equal(run(target, [[index]])[0, 0], together[row])


def test_progress_is_reported_up_to_the_last_node(
    arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    reports: list[tuple[int, int]] = []
    source = one_product(tmp_path, *arrays, "bias")
    quantize(source, tmp_path / "int8.onnx", report=lambda done, nodes: reports.append((done, nodes)))
    nodes = len(onnx.load(source).graph.node)
    assert reports == [(done, nodes) for done in range(1, nodes + 1)]


def test_extreme_values_do_not_overflow_sixteen_bits(tmp_path: Path) -> None:
    # All products at the limit: 255 · 63 twice in each 16-bit sum of a CPU without VNNI.
    weights, table = np.ones((64, 8), np.float32), np.ones((1, 64), np.float32)
    target = tmp_path / "int8.onnx"
    quantize(one_product(tmp_path, weights, table, "bias"), target)
    np.testing.assert_allclose(run(target, [[0]]), 64, rtol=1e-5)
    assert 2 * 255 * WEIGHT_LEVELS < 2**15


def test_a_table_of_4_bit_blocks_stays_what_it_is(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    table = random.integers(-8, 8, (10, 64)).astype(np.float32) * np.float32(0.375)
    weights = np.eye(64, dtype=np.float32)
    target = tmp_path / "int8.onnx"
    quantize(one_product(tmp_path, weights, table, "bias"), target)
    graph = onnx.load(target).graph
    assert "GatherBlockQuantized" in [node.op_type for node in graph.node]
    stored = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    assert stored["table/int4"] == (10, 32)
    # The product is the unit matrix's: what is left is the rounding of activations, half of 1/127.
    np.testing.assert_allclose(run(target, [[0, 7, 9]])[0], table[[0, 7, 9]], atol=3 / 254)


def test_heads_stay_in_float32(arrays: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    target = tmp_path / "int8.onnx"
    quantize(one_product(tmp_path, *arrays, "heads.colbert.bias"), target)
    kinds = [node.op_type for node in onnx.load(target).graph.node]
    assert "MatMul" in kinds
    assert "MatMulIntegerToFloat" not in kinds


def test_the_body_is_all_int8(bert_exported: Path) -> None:
    graph = onnx.load(bert_exported / "onnx" / "model_int8.onnx").graph
    kinds = [node.op_type for node in graph.node]
    # Six products in each of two layers; the two heads in float32.
    assert kinds.count("MatMulIntegerToFloat") == 12
    assert kinds.count("MatMul") == 2
    size = {path.name: path.stat().st_size for path in (bert_exported / "onnx").glob("*.onnx")}
    assert size["model_int8.onnx"] < 0.75 * size["model.onnx"]
