"""Attention without a mask wherever a batch has no padding.

With a mask, onnxruntime's attention on a CPU keeps the scores of all pairs of tokens: 8.6 GB for one text of
8,192 tokens with BGE-M3's 16 heads. Without one it works block by block in a few megabytes. A text longer
than the token budget goes alone, so its batch has no padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir
from onnx_ir import Graph, Node, TensorType, Value

OPERATOR = "MultiHeadAttention"
# Inputs of the operator: query, key, value, bias, key padding mask.
UNMASKED_INPUTS = 3
MASK_INPUT = 4


def choose_mask_at_run_time(graph: Graph) -> None:
    """Gives every masked attention of the graph a twin without mask, chosen where the mask is all 1."""
    masked = [node for node in graph if node.op_type == OPERATOR and len(node.inputs) > MASK_INPUT]
    if not masked:
        return
    least = onnx_ir.node("ReduceMin", [masked[0].inputs[MASK_INPUT]], attributes={"keepdims": 0})
    unpadded = onnx_ir.node("Cast", [least.outputs[0]], attributes={"to": onnx_ir.DataType.BOOL.value})
    least.outputs[0].name, unpadded.outputs[0].name = "attention/least_of_mask", "attention/unpadded"
    graph.insert_before(masked[0], [least, unpadded])
    for node in masked:
        _replace(graph, node, unpadded.outputs[0])


def _replace(graph: Graph, node: Node, unpadded: Value) -> None:
    then_branch = _branch(graph, node, node.inputs[:UNMASKED_INPUTS], "unpadded")
    else_branch = _branch(graph, node, node.inputs, "padded")
    choice = onnx_ir.node(
        "If", [unpadded], attributes={"then_branch": then_branch, "else_branch": else_branch}
    )
    result, former = choice.outputs[0], node.outputs[0]
    result.name, result.type, result.shape = f"{former.name}/chosen", former.type, former.shape
    graph.insert_before(node, choice)
    former.replace_all_uses_with(result)
    graph.remove(node, safe=True)


def _branch(graph: Graph, node: Node, inputs: Sequence[Value | None], name: str) -> Graph:
    """A graph of this one attention, over values of the graph around it."""
    attention = onnx_ir.node(OPERATOR, inputs, attributes=dict(node.attributes), domain=node.domain)
    result, former = attention.outputs[0], node.outputs[0]
    result.name, result.shape = f"{former.name}/{name}", former.shape
    result.type = TensorType(onnx_ir.DataType.FLOAT) if former.type is None else former.type
    return Graph(
        [], [result], nodes=[attention], opset_imports=graph.opset_imports, name=f"{former.name}/{name}"
    )
