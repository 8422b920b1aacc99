"""The body's weights in float32 again, from the int8 graph of `tercet.models.int8.quantize`.

A checkpoint such as the embedded one is a graph alone. What its matrices stand for, numbers times scales, is
a model like any other: it can be adapted, and quantized again without a loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from tercet.models.errors import CheckpointError
from tercet.models.int8.four_bits import FourBitTable

# How `tercet.models.export_onnx` names the parameters of the body, and `tercet.models.int8.quantize` what
# it makes of them.
BODY_PREFIX = "body."
NUMBERS, BLOCKS, SCALES, UNSCALED = "/int8", "/int4", "/scales", "/unscaled"
Array = npt.NDArray[Any]


def unpacked_weights(graph: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The body's parameters by the names of its transformers model.

    Raises CheckpointError where the graph is not one that `quantize` wrote of a BERT or XLM-RoBERTa.
    """
    try:
        model = onnx.load(graph)
    except (OSError, ValueError, DecodeError) as error:
        raise CheckpointError(f"{graph} cannot be read: {error}") from error
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    names = matrix_names(model.graph, tensors)
    weights: dict[str, npt.NDArray[np.float32]] = {}
    for name, values in tensors.items():
        if name.endswith(BLOCKS):
            table = name.removesuffix(BLOCKS)
            weights[table] = FourBitTable(values, tensors[table + SCALES]).values()
        elif name.endswith(NUMBERS):
            matrix = name.removesuffix(NUMBERS)
            full = values.astype(np.float32) * tensors[matrix + SCALES]
            if matrix.startswith(BODY_PREFIX):  # an embedding, a row a token
                weights[matrix] = full
            elif matrix in names:  # x·W in the graph, W·x in torch
                weights[names[matrix]] = np.ascontiguousarray(full.T)
            else:
                raise CheckpointError(f"{graph}: nothing tells which matrix of the model {matrix} is")
        elif name.startswith(BODY_PREFIX) and values.dtype == np.float32 and not name.endswith(SCALES):
            weights[name] = values.copy()  # onnx gives arrays that cannot be written to
    return {name.removeprefix(BODY_PREFIX): values for name, values in weights.items()}


def matrix_names(graph: Any, tensors: dict[str, Array]) -> dict[str, str]:
    """The model's name of each matrix of the graph, which keeps only the names of the biases beside them."""
    products = {
        node.output[0].removesuffix(UNSCALED): node.input[1].removesuffix(NUMBERS)
        for node in graph.node
        if node.op_type == "MatMulIntegerToFloat"
    }
    names = {}
    for node in graph.node:
        if node.op_type == "Add":
            product = next((name for name in node.input if name in products), None)
            bias = next((name for name in node.input if name in tensors and name.endswith(".bias")), None)
            if product is not None and bias is not None:
                names[products[product]] = bias.removesuffix("bias") + "weight"
    return names
