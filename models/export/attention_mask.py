"""Attention without a mask for long texts that have a batch to themselves.

With a mask, onnxruntime's attention on a CPU keeps the scores of all pairs of tokens: 8.6 GB for one text of
8,192 tokens with BGE-M3's 16 heads. Without one it works block by block in a few megabytes, but rounds
otherwise, and int8 makes small differences large. So texts up to `MASKED_TOKENS` always take the mask and
encode alike alone and in any batch. A longer one goes alone on a CPU, so its batch has no padding.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir
from onnx_ir import Graph, Node, TensorType, Value

OPERATOR = "MultiHeadAttention"
# What the export writes where a window leaves a choice: attention by blocks, of all pairs, and the mask.
CHOICE = "tercet::Choice"
# Inputs of the operator: query, key, value, bias, key padding mask.
UNMASKED_INPUTS = 3
MASK_INPUT = 4
MASKED_TOKENS = 1024


def choose_mask_at_run_time(graph: Graph) -> None:
    """Gives every masked attention of the graph a twin without mask, for long texts without padding."""
    masked = [node for node in graph if _is_masked_alone(node)]
    if not masked:
        return
    condition = _long_and_unpadded(masked[0].inputs[MASK_INPUT])
    graph.insert_before(masked[0], condition)
    for node in masked:
        _replace(graph, node, condition[-1].outputs[0])


def choose_blocks_at_run_time(graph: Graph) -> None:
    """Takes attention by blocks for texts of many windows, and of all pairs for others; of each way all is
    computed where it is taken alone, the bias of its scores, too.
    """
    choices = [node for node in graph if f"{node.domain}::{node.op_type}" == CHOICE]
    for number, node in enumerate(choices):
        blocks, whole, mask = node.inputs
        attention = None if whole is None else whole.producer()
        assert attention is not None  # noqa: S101 - as the export has written it
        kept = {*attention.inputs[:UNMASKED_INPUTS], mask}
        length = onnx_ir.node("Shape", [mask], attributes={"start": 1, "end": 2})
        limit = onnx_ir.node("Constant", [], attributes={"value_ints": [node.attributes["above"].as_int()]})
        above = onnx_ir.node("Greater", [length.outputs[0], limit.outputs[0]])
        for made, name in ((length, "length"), (limit, "windows"), (above, "is_long")):
            made.outputs[0].name = f"attention/{number}/{name}"
        graph.insert_before(node, [length, limit, above])
        ways = {
            branch: _copy_of(graph, way, kept, f"{number}/{name}")
            for branch, way, name in (("then_branch", blocks, "by_blocks"), ("else_branch", whole, "of_all"))
        }
        choice = onnx_ir.node("If", [above.outputs[0]], attributes=ways)
        _put(graph, node, choice)


def _copy_of(graph: Graph, result: Value | None, kept: set[Value | None], name: str) -> Graph:
    """A graph of what makes a value of others."""
    copies: dict[Value, Value] = {}
    nodes: list[Node] = []

    def copied(value: Value | None) -> Value | None:
        producer = None if value is None else value.producer()
        if value is None or producer is None or value in kept:
            return value
        if value not in copies:
            twin = Node(
                producer.domain,
                producer.op_type,
                [copied(operand) for operand in producer.inputs],
                list(producer.attributes.values()),
                num_outputs=len(producer.outputs),
            )
            for old, new in zip(producer.outputs, twin.outputs, strict=True):
                new.name, new.type, new.shape = f"{old.name}/{name}", old.type, old.shape
                copies[old] = new
            nodes.append(twin)
        return copies[value]

    output = copied(result)
    assert output is not None  # noqa: S101 - only the copy of nothing is None
    output.type = TensorType(onnx_ir.DataType.FLOAT) if output.type is None else output.type
    return Graph([], [output], nodes=nodes, opset_imports=graph.opset_imports, name=f"attention/{name}")


def _is_masked_alone(node: Node) -> bool:
    """Whether a node is an attention with a mask of keys and nothing else that keeps it from working by
    blocks: a bias or a causal mask would.
    """
    return (
        node.op_type == OPERATOR
        and len(node.inputs) == MASK_INPUT + 1
        and "unidirectional" not in node.attributes
    )


def _long_and_unpadded(mask: Value | None) -> list[Node]:
    """Nodes of which the last says whether the mask int32[B, L] is all 1 and L above `MASKED_TOKENS`."""
    least = onnx_ir.node("ReduceMin", [mask], attributes={"keepdims": 0})
    unpadded = onnx_ir.node("Cast", least.outputs, attributes={"to": onnx_ir.DataType.INT64.value})
    length = onnx_ir.node("Shape", [mask], attributes={"start": 1, "end": 2})
    unpadded_length = onnx_ir.node("Mul", [unpadded.outputs[0], length.outputs[0]])
    limit = onnx_ir.node("Constant", [], attributes={"value_ints": [MASKED_TOKENS]})
    above = onnx_ir.node("Greater", [unpadded_length.outputs[0], limit.outputs[0]])
    nodes = [least, unpadded, length, unpadded_length, limit, above]
    for node, name in zip(
        nodes, ("least", "unpadded", "length", "unpadded_length", "limit", "long"), strict=True
    ):
        node.outputs[0].name = f"attention/{name}"
    return nodes


def _replace(graph: Graph, node: Node, is_long: Value) -> None:
    then_branch = _branch(graph, node, node.inputs[:UNMASKED_INPUTS], "without_mask")
    else_branch = _branch(graph, node, node.inputs, "with_mask")
    choice = onnx_ir.node(
        "If", [is_long], attributes={"then_branch": then_branch, "else_branch": else_branch}
    )
    _put(graph, node, choice)


def _put(graph: Graph, node: Node, choice: Node) -> None:
    """Puts a choice in the place of a node."""
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
