"""OpenVINO with our own exported float32 graph, for encode.py: 8-bit weights and inputs by NNCF, the rest in
bfloat16 where the processor has it.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import nncf
import numpy as np
import onnx
import openvino
from openvino.properties import hint
from timed import Asked, Run, main
from tokenizers import Tokenizer

BATCH = 32
CALIBRATION = 64
GRAPH, TOKENIZER = "onnx/model.onnx", "tokenizer.json"


def prepare(asked: Asked, options: argparse.Namespace) -> Run:
    """All texts, sorted by length, in batches by as many requests at a time as it deems best."""
    tokenizer = Tokenizer.from_file(str(asked.checkpoint / TOKENIZER))
    tokenizer.enable_truncation(asked.max_length)
    tokenizer.no_padding()
    core = openvino.Core()
    model = core.read_model(masked(onnx.load(asked.checkpoint / GRAPH)).SerializeToString())
    if options.precision == "int8":
        with options.texts.open(encoding="utf-8") as lines:
            sample = [line for line, _ in zip(lines, range(CALIBRATION), strict=False)]
        encoded = [encoding.ids for encoding in tokenizer.encode_batch(sample)]
        calibration = nncf.Dataset([inputs(encoded, [row]) for row in range(len(encoded))])
        model = nncf.quantize(model, calibration, model_type=nncf.ModelType.TRANSFORMER)
    compiled = core.compile_model(
        model,
        "CPU",
        {hint.performance_mode: hint.PerformanceMode.THROUGHPUT, hint.inference_precision: options.rest},
    )

    requests = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    own = threading.local()

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        own.request.infer(given)
        return {side: own.request.get_tensor(side).data.copy() for side in asked.outputs}

    pool = ThreadPoolExecutor(requests)

    def run(texts: list[str]) -> list[dict[str, Any]]:
        ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        return list(pool.map(answer, (inputs(ids, rows) for rows in batches(ids))))

    return run


def masked(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph whose attention always has its mask: NNCF does not read the choice that ours makes."""
    nodes = []
    for node in model.graph.node:
        if node.op_type != "If":
            nodes.append(node)
            continue
        branch = next(each.g for each in node.attribute if each.name == "else_branch")
        for inner in branch.node:
            inner.output[:] = [
                node.output[0] if name == branch.output[0].name else name for name in inner.output
            ]
            nodes.append(inner)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def batches(ids: list[list[int]]) -> Iterator[list[int]]:
    """Rows of texts of like length."""
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    return (order[first : first + BATCH] for first in range(0, len(order), BATCH))


def inputs(ids: list[list[int]], rows: list[int]) -> dict[str, Any]:
    """Token ids int64[B, L] and which of them are there."""
    longest = max(len(ids[row]) for row in rows)
    token_ids = np.zeros((len(rows), longest), np.int64)
    mask = np.zeros_like(token_ids)
    for place, row in enumerate(rows):
        token_ids[place, : len(ids[row])] = ids[row]
        mask[place, : len(ids[row])] = 1
    return {"input_ids": token_ids, "attention_mask": mask}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--precision", choices=("int8", "float"), default="int8")
    parser.add_argument("--rest", choices=("bf16", "f32"), default="bf16", help="what is not in 8 bits")
    main(prepare, parser)
