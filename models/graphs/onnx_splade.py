"""The two graphs of a checkpoint with SPLADE: a body, and the head that weighs the vocabulary.

They are two, so that the head is run on some tokens at a time: its logits for a whole batch are gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tercet.models.batching import PaddedOutputs
from tercet.models.formats.splade import HIDDEN, SpladeSettings
from tercet.models.graphs.onnx_graph import OnnxGraph, Placement
from tercet.models.lexical.splade_rows import splade_rows
from tercet.models.representations import Float32, Int64, Output

MASK, JOINED = "attention_mask", "joined"


def head_file(graph: Path) -> Path:
    """Where the head of a body's graph is."""
    return graph.with_name(f"{graph.stem}_head.onnx")


class OnnxSplade:
    """Both graphs, opened; as an `OnnxGraph`. Safe to run from several threads."""

    def __init__(
        self, path: Path, placement: Placement, vocabulary_size: int, settings: SpladeSettings
    ) -> None:
        """path: of the body. Raises as `OnnxGraph`."""
        self._body = OnnxGraph(path, placement)
        self._head = OnnxGraph(head_file(path), placement)
        self._vocabulary_size = vocabulary_size
        self._settings = settings

    def forward(self, ids: Int64, mask: Int64, outputs: Sequence[Output]) -> PaddedOutputs:
        """As `OnnxGraph.forward`; the lexical weights are ready rows."""
        wanted = [HIDDEN if name == "sparse" else name for name in outputs]
        arrays = self._body.run(wanted, {"input_ids": ids, MASK: mask})
        hidden = arrays.get(HIDDEN)
        if hidden is None:
            return PaddedOutputs(arrays.get("dense"), None, arrays.get("colbert"))

        def join(texts: slice, tokens: slice) -> Float32:
            # Contiguous, or onnxruntime copies all of it.
            states, attended = (np.ascontiguousarray(array[texts, tokens]) for array in (hidden, mask))
            return self._head.run([JOINED], {HIDDEN: states, MASK: attended})[JOINED]

        rows = splade_rows(mask.sum(1), self._vocabulary_size, self._settings, join)
        return PaddedOutputs(arrays.get("dense"), rows, arrays.get("colbert"))
