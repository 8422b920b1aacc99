"""What runs an exported graph: kernels of our own where they take it, else onnxruntime."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tercet.models.checkpoint import EncodingSettings
from tercet.models.encoder import Engine
from tercet.models.errors import UnsupportedError
from tercet.models.graphs.onnx_graph import OnnxGraph, Placement
from tercet.models.graphs.onnx_splade import OnnxSplade
from tercet.models.graphs.tables import TextRows
from tercet.models.native.native_graph import NativeGraph, is_fast
from tercet.models.weights.head_weights import HeadWeights

log = logging.getLogger("tercet")

OpenGraph = NativeGraph | OnnxGraph | OnnxSplade


@dataclass(frozen=True, slots=True)
class GraphEngine:
    """How one encoder opens its graphs, of the base and of adapters.

    engine: `native` for our kernels alone, `onnxruntime`, or `onnx` for the former where they can;
    text_rows: which a graph's tables must have; vocabulary_size: the terms that it weighs with SPLADE.
    """

    engine: Engine
    placement: Placement
    settings: EncodingSettings
    text_rows: TextRows
    vocabulary_size: int

    def open(self, path: Path, precision: str, heads: HeadWeights) -> OpenGraph:
        """An open graph, which has these heads. Raises CheckpointError where texts may go beyond its tables,
        and UnsupportedError where `native` cannot run it.
        """
        self.text_rows.require(path)
        native = None if self.engine == "onnxruntime" else self._native(path, precision, heads)
        return native or open_graph(path, self.placement, self.vocabulary_size, self.settings)

    def _native(self, path: Path, precision: str, heads: HeadWeights) -> NativeGraph | None:
        """The graph as our kernels run it. Where they cannot, or are no faster: UnsupportedError, or None."""
        required = self.engine == "native"
        if self.placement.kind != "cpu" or precision != "int8":
            if not required:
                return None
            raise UnsupportedError(
                f"the native engine runs int8 graphs on a CPU, not {precision} on {self.placement.kind}; "
                "export with --int8, or choose the engine onnx"
            )
        if not is_fast():
            if not required:
                return None
            warn_of_slow_kernels()
        if not heads.are_linear(self.settings):
            if not required:
                return None
            raise UnsupportedError(
                "the native engine has linear layers alone and hides no tokens of queries from others, and "
                "this checkpoint has or does more; choose onnx"
            )
        try:
            return NativeGraph(path, self.settings, heads, self.text_rows.pad_id, self.placement.threads)
        except UnsupportedError as error:
            if required:
                raise UnsupportedError(f"{error}; choose the engine onnx") from error
            return None


@cache
def warn_of_slow_kernels() -> None:
    """The log tells once that our kernels are slow on this processor."""
    log.warning(
        "the native engine runs without the vector instructions that it is made for (AVX2 or newer, on ARM "
        "dot products), and many times slower: this processor has none of them; take the engine onnx or "
        "onnxruntime"
    )


def open_graph(
    path: Path, placement: Placement, vocabulary_size: int, settings: EncodingSettings
) -> OnnxGraph | OnnxSplade:
    """A graph as onnxruntime runs it and its settings say. vocabulary_size: the terms that it weighs with
    SPLADE.
    """
    if settings.splade is None:
        return OnnxGraph(path, placement)
    return OnnxSplade(path, placement, vocabulary_size, settings.splade)
