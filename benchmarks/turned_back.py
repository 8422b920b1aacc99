"""Writes a shipped checkpoint's int8 graph as float32 weights, which the torch engine runs.

The weights before quantization do not come with the project. These are the very values that the graph's
integers stand for, so that what remains between the two engines is the rounding of what is multiplied with
them: `benchmarks/quality.py --float32 FOLDER` measures what that costs.

Run: python -m benchmarks.turned_back minilm-m3|multi-m3 FOLDER
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from tercet.models.checkpoint import SHIPPED, resolve_checkpoint
from tercet.models.graphs.record import choose_graph, read_export, verify_graph
from tercet.models.native.bert_graph import BertGraph, Layer, read_bert_graph
from tercet.models.native.graph_weights import Linear, Norm
from tercet.models.representations import Float32

SIDES = ("query", "key", "value")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkpoint", choices=SHIPPED)
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    if asked.folder.exists():
        parser.error(f"{asked.folder} is there already; name a folder that is not, or remove it")
    turn_back(asked.checkpoint, asked.folder)


def turn_back(checkpoint: str, folder: Path) -> None:
    """Writes the checkpoint of these weights into a folder that is not there yet."""
    shipped = resolve_checkpoint(checkpoint)
    graph = read_bert_graph(verify_graph(shipped, choose_graph(read_export(shipped), "int8", "cpu")[1]))
    shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("onnx"))
    save_file(weights_of(graph), folder / "model.safetensors")


def weights_of(graph: BertGraph) -> dict[str, Float32]:
    """All weights by their names in transformers' `BertModel`."""
    rows = np.arange(len(graph.words.numbers), dtype=np.int32)
    found = {
        "embeddings.word_embeddings.weight": graph.words.rows(rows),
        "embeddings.position_embeddings.weight": graph.positions,
        # Already part of those of the positions.
        "embeddings.token_type_embeddings.weight": np.zeros((2, graph.positions.shape[1]), np.float32),
        **norm("embeddings.LayerNorm", graph.norm),
    }
    for place, layer in enumerate(graph.layers):
        found |= layer_weights(f"encoder.layer.{place}", layer)
    return found


def layer_weights(prefix: str, layer: Layer) -> dict[str, Float32]:
    """Those of one layer."""
    found = {
        **linear(f"{prefix}.attention.output.dense", layer.out),
        **norm(f"{prefix}.attention.output.LayerNorm", layer.out_norm),
        **linear(f"{prefix}.intermediate.dense", layer.rise),
        **linear(f"{prefix}.output.dense", layer.fall),
        **norm(f"{prefix}.output.LayerNorm", layer.fall_norm),
    }
    width = layer.out.numbers.shape[0]
    for place, side in enumerate(SIDES):
        columns = slice(place * width, (place + 1) * width)
        part = Linear(layer.into.numbers[:, columns], layer.into.scales[columns], layer.into.biases[columns])
        found |= linear(f"{prefix}.attention.self.{side}", part)
    return found


def linear(name: str, part: Linear) -> dict[str, Float32]:
    """Matrix and biases, as torch has them: rows of outputs."""
    matrix = part.numbers.astype(np.float32) * part.scales
    return {
        f"{name}.weight": np.ascontiguousarray(matrix.T),
        f"{name}.bias": np.ascontiguousarray(part.biases),
    }


def norm(name: str, part: Norm) -> dict[str, Float32]:
    """Weights and biases of a layer norm."""
    return {
        f"{name}.weight": np.ascontiguousarray(part.weights),
        f"{name}.bias": np.ascontiguousarray(part.biases),
    }


if __name__ == "__main__":
    main()
