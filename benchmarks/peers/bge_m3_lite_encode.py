"""bge-m3-lite in 8 bits with SmoothQuant, for encode.py.

It knows the published weights alone, by their digests. So those of the checkpoint are exported as the
published graph is, quantized by its own recipe, and put where it keeps files; digests are not compared here.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from bge_m3_lite import BGEM3Embedder, hub
from bge_m3_lite.fuse import fuse
from bge_m3_lite.quantize import quantize
from timed import Asked, Run, main
from transformers import AutoModel

CALIBRATION = 32
FILES = ("sentencepiece.bpe.model", "colbert_linear.pt", "sparse_linear.pt")


def prepare(asked: Asked, options: argparse.Namespace) -> Run:
    """All texts in its batches."""
    hub.is_complete = lambda path, remote, *, verify=False: path.exists()
    folder = tempfile.TemporaryDirectory()
    cache = Path(folder.name)
    # To quantize takes 23 GB, which are not to be counted.
    maker = get_context("spawn").Process(target=fill, args=(cache, asked.checkpoint, options.texts))
    maker.start()
    maker.join()
    if maker.exitcode:
        raise SystemExit(
            f"no weights were made: exit code {maker.exitcode}, as where memory does not suffice"
        )
    with folder:  # the weights are mapped, and need no name from here on
        embedder = BGEM3Embedder(cache, precision="int8", max_length=asked.max_length, quiet=True)
    sides = {
        "return_dense": "dense" in asked.outputs,
        "return_sparse": "sparse" in asked.outputs,
        "return_colbert_vecs": "colbert" in asked.outputs,
    }
    return lambda texts: embedder.encode(texts, **sides)


def fill(cache: Path, checkpoint: Path, texts: Path) -> None:
    """The files that it looks for, with 8-bit weights calibrated by the first texts."""
    for name in FILES:
        shutil.copyfile(checkpoint / name, cache / name)
    write_graph(checkpoint, cache / "model.onnx")
    fuse(cache / "model.onnx")
    with texts.open(encoding="utf-8") as lines:
        sample = [json.loads(line)["text"] for line, _ in zip(lines, range(CALIBRATION), strict=False)]
    quantize(cache / "model_fused.onnx", cache / "model_int8.onnx", calibration_texts=sample)
    for name in ("model.onnx_data", "model_fused.onnx_data"):
        (cache / name).unlink(missing_ok=True)


def write_graph(checkpoint: Path, file: Path) -> None:
    """The body as a graph like the published one: token ids and mask to states, its weights beside it."""
    body = AutoModel.from_pretrained(checkpoint, add_pooling_layer=False, attn_implementation="eager").eval()

    class States(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body

        def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
            return self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.tensor([[0, 9, 11, 2], [0, 9, 2, 1]])
    axes = {0: "batch", 1: "length"}
    torch.onnx.export(
        States(),
        (ids, (ids != 1).long()),
        str(file),
        input_names=["input_ids", "attention_mask"],
        output_names=["token_embeddings"],
        dynamic_axes={"input_ids": axes, "attention_mask": axes, "token_embeddings": axes},
        opset_version=17,
        dynamo=False,
    )
    import onnx

    model = onnx.load(file)
    for left in file.parent.iterdir():
        if left.name not in FILES:
            left.unlink()
    onnx.save(model, file, save_as_external_data=True, location=f"{file.name}_data")


if __name__ == "__main__":
    main(prepare)
