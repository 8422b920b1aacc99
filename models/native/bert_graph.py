"""An exported int8 graph of BERT's shape, as the arrays that a layer is made of.

Such a graph is that of BERT, RoBERTa or XLM-RoBERTa: layer norms after each part, attention to all tokens,
the exact GELU, and positions counted from the first token. `tercet.models.int8.quantize` wrote it, whose
names and
numbers are used here. Any other graph, also of an adapter with layers of its own, is said to be none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tercet.models.errors import UnsupportedError
from tercet.models.graphs.onnx_file import BROKEN, Node, OnnxFile, read_onnx
from tercet.models.graphs.tables import EMBEDDINGS, POSITIONS, WORDS
from tercet.models.native.graph_weights import GraphWeights, Linear, Norm, Table
from tercet.models.representations import Float32

PRODUCT, ATTENTION, NORM, GELU = "MatMulIntegerToFloat", "MultiHeadAttention", "LayerNormalization", "Gelu"
TYPES_OF_TOKENS = f"{EMBEDDINGS}token_type_embeddings.weight"
# Weights keep to 7 bits, see `tercet.models.int8.quantize`; kernels take no others.
MOST_LEVELS = 63
# A width takes whole vectors of the processor.
LANES = 16
# Of a layer; a graph has two more layer norms or products of its own where an adapter is in it.
PRODUCTS, NORMS = 6, 2


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. into: queries, keys and values side by side; out: what follows attention; rise, fall: the
    dense layers; each norm follows what stands before it and the sum with its input.
    """

    into: Linear
    out: Linear
    out_norm: Norm
    rise: Linear
    fall: Linear
    fall_norm: Norm


@dataclass(frozen=True, slots=True)
class BertGraph:
    """Everything between token ids and the last states. words, positions: embeddings, those of positions
    float32[P, D] with the embedding that every token has besides; heads, epsilon: of attention and layer
    norms; counts_pads: whether a token that stands for padding has no position of its own; release: as that
    of `OnnxFile`.
    """

    words: Table
    positions: Float32
    norm: Norm
    layers: list[Layer]
    heads: int
    epsilon: float
    counts_pads: bool
    release: Callable[[], None]


def read_bert_graph(path: Path) -> BertGraph:
    """Reads a graph. Raises CheckpointError where it cannot be read, or has a weight of another shape than
    those beside it, and UnsupportedError naming what it is that kernels do not take.
    """
    file = read_onnx(path)
    kinds = Counter(node.kind for node in file.nodes)
    count = kinds[PRODUCT] // PRODUCTS
    attributes = {node.kind: node.attributes for node in file.nodes}
    alike = _alike(file.nodes, NORM, "epsilon") and _alike(file.nodes, ATTENTION, "num_heads")
    if (
        count == 0
        or kinds[PRODUCT] != PRODUCTS * count
        or kinds[NORM] != NORMS * count + 1
        or kinds[GELU] != count
        or attributes[GELU].get("approximate", b"none") != b"none"
        or kinds["Tanh"] + kinds["Sigmoid"] + kinds["Softmax"] + kinds["Where"] > 0
        or ATTENTION not in kinds
        or not alike
    ):
        raise UnsupportedError(f"{path} is not an int8 graph of BERT's shape: {dict(kinds)}")
    try:
        _require_order(file, path)
        return _bert_of(file, count, attributes, path)
    except (*BROKEN, AttributeError) as error:
        raise UnsupportedError(f"{path} is not an int8 graph of BERT's shape: {error}") from error


def _alike(nodes: list[Node], kind: str, attribute: str) -> bool:
    return len({node.attributes.get(attribute) for node in nodes if node.kind == kind}) == 1


def _require_order(file: OnnxFile, path: Path) -> None:
    """Raises ValueError where parts are not joined as BERT's: each layer norm after the sum of what was made
    and the norm before, GELU between the dense layers, attention by scores and padding alone.
    """
    linears = list(_linears(file, GraphWeights(file.weights, path)))
    sums = {node.outputs[0]: set(node.inputs) for node in file.nodes if node.kind == "Add"}
    norms = [node for node in file.nodes if node.kind == NORM]
    for number, (former, norm) in enumerate(pairwise(norms)):
        made = linears[number // 2 * PRODUCTS + (3 if number % 2 == 0 else 5)]
        if sums.get(norm.inputs[0]) != {made, former.outputs[0]}:
            raise ValueError(f"layer norm {number + 1} does not follow its input and what was made of it")
    for number, node in enumerate(node for node in file.nodes if node.kind == GELU):
        if node.inputs[0] != linears[number * PRODUCTS + 4]:
            raise ValueError(f"GELU {number} does not follow a dense layer")
    for node in file.nodes:
        if node.kind == ATTENTION and (len(node.inputs) > 5 or any(node.inputs[3:4])):
            raise ValueError("attention takes more than queries, keys, values and a mask")


def _bert_of(
    file: OnnxFile, count: int, attributes: Mapping[str, Mapping[str, Any]], path: Path
) -> BertGraph:
    weights = GraphWeights(file.weights, path)
    width = weights.table_width(POSITIONS)
    linears = _linears(file, weights)
    norms = [weights.norm(node.inputs[1:3], width) for node in file.nodes if node.kind == NORM]
    layers = []
    for number, attended in enumerate(_attended(file)):
        parts = [linears[name] for name in attended]
        into = Linear(
            np.concatenate([part.numbers for part in parts], axis=1),
            np.concatenate([part.scales for part in parts]),
            np.concatenate([part.biases for part in parts]),
        )
        out, rise, fall = [
            linear
            for name, linear in list(linears.items())[PRODUCTS * number :][:PRODUCTS]
            if name not in attended
        ]
        layers.append(Layer(into, out, norms[2 * number + 1], rise, fall, norms[2 * number + 2]))
    if len(layers) != count:
        raise KeyError(f"attention in each of {count} layers")
    position_table = weights.table(POSITIONS, width)
    positions = position_table.rows(np.arange(len(position_table.numbers), dtype=np.int32))
    positions += weights.table(TYPES_OF_TOKENS, width).rows(np.zeros(1, np.int32))
    graph = BertGraph(
        weights.table(WORDS, width),
        positions,
        norms[0],
        layers,
        int(attributes[ATTENTION]["num_heads"]),
        float(attributes[NORM]["epsilon"]),
        any(node.kind == "CumSum" for node in file.nodes),
        file.release,
    )
    _require_shapes(graph, float(attributes[ATTENTION]["scale"]), path)
    return graph


def _linears(file: OnnxFile, weights: GraphWeights) -> dict[str, Linear]:
    """The linear parts in their order, by the name of what they make; weights that are equal share a name."""
    products = {
        node.outputs[0].removesuffix("/unscaled"): node for node in file.nodes if node.kind == PRODUCT
    }
    linears = {}
    for node in file.nodes:
        product = next((name for name in node.inputs if name in products), None)
        bias = next((name for name in node.inputs if name in file.weights), None)
        if node.kind == "Add" and product is not None and bias is not None:
            numbers, scales = products[product].inputs[1], products[product].inputs[3]
            linears[node.outputs[0]] = weights.linear(numbers, scales, bias)
    return linears


def _attended(file: OnnxFile) -> list[tuple[str, ...]]:
    """Of each attention, from which linear parts its queries, keys and values come."""
    shaped = {node.outputs[0]: node.inputs[0] for node in file.nodes if node.kind == "Reshape"}

    def source(name: str) -> str:
        return source(shaped[name]) if name in shaped else name

    inputs = [
        tuple(source(name) for name in node.inputs[:3]) for node in file.nodes if node.kind == ATTENTION
    ]
    return list(dict.fromkeys(inputs))  # once where it is in both branches of a choice


def _require_shapes(graph: BertGraph, scaling: float, path: Path) -> None:
    """Raises UnsupportedError where a width is none that kernels take."""
    width = graph.positions.shape[1]
    for number, layer in enumerate(graph.layers):
        inner = layer.rise.numbers.shape[1] if layer.rise.numbers.ndim == 2 else 0
        shapes = ((layer.into, width, 3 * width), (layer.out, width, width), (layer.rise, width, inner))
        for linear, rows, columns in (*shapes, (layer.fall, inner, width)):
            if linear.numbers.shape != (rows, columns) or columns % LANES or rows % LANES:
                raise UnsupportedError(
                    f"{path}: layer {number} has a matrix of {linear.numbers.shape}; "
                    f"kernels take widths that are multiples of {LANES}"
                )
            if not -MOST_LEVELS <= linear.numbers.min() <= linear.numbers.max() <= MOST_LEVELS:
                raise UnsupportedError(
                    f"{path}: layer {number} has weights of more than 7 bits; export it again"
                )
    if graph.heads < 1 or width % graph.heads:
        raise UnsupportedError(f"{path} has {graph.heads} heads in a width of {width}")
    if not math.isclose(scaling, (width // graph.heads) ** -0.5, rel_tol=1e-5):
        raise UnsupportedError(f"{path}: attention scales its scores by {scaling}")
