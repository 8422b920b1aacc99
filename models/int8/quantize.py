"""A float32 graph to one with 8-bit matrix products and embeddings of 8 bits, or 4 where they come so.

onnxruntime's own dynamic quantization takes one scale for all activations of a batch, so that a text's
vectors depend on the texts beside it. Here every token has its own scale, and every output channel
its own, so a text encodes alike in any batch, at half the error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from tercet.models.int8.compensated_rounding import compensated_rows
from tercet.models.int8.four_bits import BLOCK, four_bit_table
from tercet.models.int8.second_moments import Moments, second_moments
from tercet.models.representations import Int32

# Activations: unsigned, 128 standing for 0.
ACTIVATION_LEVELS = 127.0
ACTIVATION_ZERO = 128
# CPUs without VNNI add products of 8-bit numbers in pairs into 16 bits, where 2 · 255 · 63 fits and
# 2 · 255 · 127 does not. So weights keep to 7 bits, and every machine gives the same result.
WEIGHT_LEVELS = 63
EMBEDDING_LEVELS = 127
# How the graph of `tercet.models.export_onnx` names the parameters of the heads.
HEAD_PREFIX = "heads."
SMALLEST_SCALE = 1e-12
INTEGERS = "integers"  # the property of a graph that has their digest
# What goes into a file of its own: all large tensors of an int8 graph are of these types.
EXTERNAL = (TensorProto.INT8, TensorProto.UINT8, TensorProto.FLOAT16)


Progress = Callable[[int, int], None]
"""Is told how many of how many nodes of a graph are done."""


def unreported(_done: int, _nodes: int) -> None:
    """What is told of progress that nobody follows."""


def quantize(
    source: Path,
    target: Path,
    texts: Sequence[Int32] = (),
    report: Progress = unreported,
    *,
    identified: bool = False,
) -> None:
    """Writes the float32 graph `source` as `target`, matrix products with weights and embeddings in int8.

    texts: ids of the tokens of texts by which weights are rounded so that their errors make up for each
    other; without them each is rounded to the nearest. identified: the graph tells its integers' digest, as
    one with texts does: what the weights were rounded from says no more what they are. report: is told how
    far it is.

    The heads stay in float32: they cost little, and their rounding would go straight into the scores.
    The numbers go into `<target>.data`, which must not exist: a file that changes only with the body,
    so that a checkpoint whose heads are fitted again shares it with the one before.
    """
    model = onnx.load(source)
    rewriter = _Rewriter(model.graph)
    if texts:
        rewriter.moments = second_moments(source, rewriter.product_inputs, texts)
    nodes = list(model.graph.node)
    for done, node in enumerate(nodes, start=1):
        rewriter.add(node)
        report(done, len(nodes))
    rewriter.finish()
    if all(opset.domain != "com.microsoft" for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    if texts or identified:  # in the graph's own file, whose digest identifies an encoder
        helper.set_model_props(model, {INTEGERS: rewriter.digest})
    for tensor in model.graph.initializer:
        if tensor.data_type in EXTERNAL and len(tensor.dims) > 0:
            set_external_data(tensor, target.name + ".data")
    onnx.save(model, target)
    # onnx keeps this file from other users, but an image's user must read it.
    target.with_name(target.name + ".data").chmod(target.stat().st_mode)


def is_identified(graph: Path) -> bool:
    """Whether a graph tells its integers' digest."""
    return any(prop.key == INTEGERS for prop in onnx.load(graph, load_external_data=False).metadata_props)


def quantize_rows(
    values: npt.NDArray[np.float32], levels: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Rows as whole numbers in ±levels and the scale of each: values ≈ numbers · scales.

    values: float32[R, C]. Returns int8[R, C] and float32[R, 1].
    """
    scales = np.maximum(np.abs(values).max(axis=1, keepdims=True), SMALLEST_SCALE) / np.float32(levels)
    return np.rint(values / scales).astype(np.int8), scales.astype(np.float32)


class _Rewriter:
    """Replaces nodes of one graph, keeping the order in which they may run."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._head_products = {
            name
            for node in graph.node
            if node.op_type == "Add" and any(name.startswith(HEAD_PREFIX) for name in node.input)
            for name in node.input
        }
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self.moments: Moments = {}  # of the inputs of products
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._quantized: dict[str, tuple[str, str]] = {}
        self._constant("int8/one", np.float32(1))
        self._constant("int8/zero", np.uint8(ACTIVATION_ZERO))
        self._constant("int8/levels", np.float32(ACTIVATION_LEVELS))
        self._constant("int8/smallest", np.float32(SMALLEST_SCALE))
        self._constant("int8/last_axis", np.array([-1], np.int64))

    @property
    def digest(self) -> str:
        """sha256 of the integers of all products so far, hexadecimal."""
        digest = hashlib.sha256()
        for name, tensor in self._constants.items():
            if name.endswith("/int8"):
                digest.update(tensor.raw_data)
        return digest.hexdigest()

    @property
    def product_inputs(self) -> dict[str, int]:
        """The width of each tensor that goes into a product which `add` replaces."""
        return {
            node.input[0]: self._weights[node.input[1]].dims[0]
            for node in self._graph.node
            if self._is_product(node)
        }

    def add(self, node: Any) -> None:
        """Appends a node, or what stands for it."""
        if self._is_product(node):
            self._product(node)
        elif node.op_type == "Gather" and self._is_matrix(node.input[0]):
            self._embedding(node)
        else:
            self._nodes.append(node)

    def finish(self) -> None:
        """Puts the new nodes and constants into the graph; constants no node uses are dropped."""
        used = {name for node in self._nodes for name in node.input}
        tensors = {**self._weights, **self._constants}
        kept = [tensor for name, tensor in tensors.items() if name in used]
        for field in ("node", "initializer", "value_info"):
            del getattr(self._graph, field)[:]
        self._graph.node.extend(self._nodes)
        self._graph.initializer.extend(kept)

    def _is_product(self, node: Any) -> bool:
        is_head = node.output[0] in self._head_products
        return node.op_type == "MatMul" and self._is_matrix(node.input[1]) and not is_head

    def _is_matrix(self, name: str) -> bool:
        tensor = self._weights.get(name)
        return tensor is not None and tensor.data_type == TensorProto.FLOAT and len(tensor.dims) == 2

    def _product(self, node: Any) -> None:
        """x·W as (integers of x · integers of W) · scale of each channel of W · scale of each row of x."""
        numbers, scales = self._activations(node.input[0])
        weight, output = node.input[1], node.output[0]
        if f"{weight}/int8" not in self._constants:
            channels = numpy_helper.to_array(self._weights[weight]).T
            integers, channel_scales = quantize_rows(channels, WEIGHT_LEVELS)
            moments = self.moments.get(node.input[0])
            if (
                moments is not None and np.isfinite(moments).all()
            ):  # else the graph is refused as it is checked
                integers = compensated_rows(channels, moments, channel_scales, WEIGHT_LEVELS)
            self._constant(f"{weight}/int8", np.ascontiguousarray(integers.T))
            self._constant(f"{weight}/scales", channel_scales[:, 0])
            self._constant(f"{weight}/zeros", np.zeros(len(channel_scales), np.int8))
        inputs = [numbers, f"{weight}/int8", "int8/one", f"{weight}/scales", "int8/zero", f"{weight}/zeros"]
        self._node("MatMulIntegerToFloat", inputs, f"{output}/unscaled", domain="com.microsoft")
        self._node("Mul", [f"{output}/unscaled", scales], output)

    def _activations(self, name: str) -> tuple[str, str]:
        """Names of the 8-bit numbers of an activation and of the scale of each of its rows."""
        if name not in self._quantized:
            at = f"{name}/rows"
            self._node("ReduceMax", [name, "int8/last_axis"], f"{at}/max", keepdims=1)
            self._node("ReduceMin", [name, "int8/last_axis"], f"{at}/min", keepdims=1)
            self._node("Neg", [f"{at}/min"], f"{at}/negated")
            self._node("Max", [f"{at}/max", f"{at}/negated", "int8/smallest"], f"{at}/largest")
            self._node("Div", [f"{at}/largest", "int8/levels"], f"{at}/scale")
            self._node("Div", [name, f"{at}/scale"], f"{at}/scaled")
            self._node("QuantizeLinear", [f"{at}/scaled", "int8/one", "int8/zero"], f"{at}/int8")
            self._quantized[name] = (f"{at}/int8", f"{at}/scale")
        return self._quantized[name]

    def _embedding(self, node: Any) -> None:
        """Rows of a table: of 4-bit blocks where that is what it holds, or integers times the row's scale."""
        table = node.input[0]
        if f"{table}/int8" not in self._constants and f"{table}/int4" not in self._constants:
            values = numpy_helper.to_array(self._weights[table])
            blocks = four_bit_table(values)
            if blocks is not None:
                self._constant(f"{table}/int4", blocks.numbers)
                self._constant(f"{table}/scales", blocks.scales)
                # The products then are those of float32; onnxruntime does this once, as it opens the graph.
                self._node("Cast", [f"{table}/scales"], f"{table}/float_scales", to=TensorProto.FLOAT)
            else:
                integers, scales = quantize_rows(values, EMBEDDING_LEVELS)
                self._constant(f"{table}/int8", integers)
                self._constant(f"{table}/scales", scales)
        if f"{table}/int4" in self._constants:
            self._block_rows(table, node.input[1], node.output[0])
        else:
            self._integer_rows(table, node.input[1], node.output[0])

    def _block_rows(self, table: str, rows: str, output: str) -> None:
        inputs = [f"{table}/int4", rows, f"{table}/float_scales"]
        axes = {"gather_axis": 0, "quantize_axis": 1, "block_size": BLOCK, "bits": 4}
        self._node("GatherBlockQuantized", inputs, output, domain="com.microsoft", **axes)

    def _integer_rows(self, table: str, rows: str, output: str) -> None:
        self._node("Gather", [f"{table}/int8", rows], f"{output}/int8")
        self._node("Gather", [f"{table}/scales", rows], f"{output}/scales")
        self._node("Cast", [f"{output}/int8"], f"{output}/unscaled", to=TensorProto.FLOAT)
        self._node("Mul", [f"{output}/unscaled", f"{output}/scales"], output)

    def _constant(self, name: str, value: npt.NDArray[Any] | np.generic) -> None:
        self._constants[name] = numpy_helper.from_array(np.asarray(value), name)

    def _node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> None:
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
