"""FlagEmbedding's encoder of BGE-M3, for encode.py: float32, or float16 on a GPU."""

from __future__ import annotations

import argparse

from FlagEmbedding import BGEM3FlagModel
from timed import Asked, Run, main

CUDA_BATCH = 256  # its default


def prepare(asked: Asked, options: argparse.Namespace) -> Run:
    """All texts in its batches."""
    on_gpu = asked.device == "cuda"
    model = BGEM3FlagModel(
        str(asked.checkpoint),
        use_fp16=on_gpu,
        devices="cuda:0" if on_gpu else "cpu",
        pooling_method=asked.pooling,
    )
    sides = {
        "return_dense": "dense" in asked.outputs,
        "return_sparse": "sparse" in asked.outputs,
        "return_colbert_vecs": "colbert" in asked.outputs,
    }
    batch_size = CUDA_BATCH if on_gpu else options.batch
    return lambda texts: model.encode(texts, batch_size=batch_size, max_length=asked.max_length, **sides)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    main(prepare, parser)
