"""An exported int8 graph of BERT's shape, run by kernels of our own: no padding, and one thread for a pass.

Products are of the same whole numbers as onnxruntime's, but what is between them is done while a few rows are
in the cache, and attention is of whole numbers, too. What a text gets does not depend on the texts beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tercet.models.batching import PaddedOutputs
from tercet.models.checkpoint import EncodingSettings
from tercet.models.errors import CheckpointError, EncoderMemoryError
from tercet.models.native.bert_graph import BertGraph, Layer, read_bert_graph
from tercet.models.native.graph_weights import Linear
from tercet.models.native.kernels import (
    INSTRUCTIONS,
    Record,
    attend_with_heads,
    encoder_layer,
    finish_layer,
    normalize_states,
    project_layer,
    project_tokens,
    run_layers,
    weigh_tokens,
)
from tercet.models.native.panels import by_lanes, byte_panels, short_panels
from tercet.models.representations import Float32, Int32, Int64, Output, lengths_of, offsets_of
from tercet.models.weights.dense_layers import Layers
from tercet.models.weights.head_weights import HeadWeights
from tercet.models.workers import Workers

# Tokens of a text alone from which on threads gain from sharing it.
SHARED_TOKENS = 128


def is_fast() -> bool:
    """Whether this processor has instructions that make the kernels faster than onnxruntime's."""
    return INSTRUCTIONS != "plain"


class NativeGraph:
    """An open graph. Safe to run from several threads."""

    def __init__(
        self, path: Path, settings: EncodingSettings, heads: HeadWeights, pad_id: int, threads: int
    ) -> None:
        """threads: of a pass with one long text alone; others take one. Raises as `read_bert_graph`."""
        graph = read_bert_graph(path)
        _require_width(graph, heads, path)
        self._graph = graph
        self._layers = tuple(_panels(graph))
        self._settings = settings
        self._pad_id = pad_id
        self._dense_layers = heads.dense
        self._sparse = heads.sparse
        self._colbert = heads.colbert
        self._panels = None if heads.colbert is None else short_panels(heads.colbert.weight)
        self._threads = threads
        # A pool of its own: a thread of the encoder's waits for these, which wait for none.
        self._pool = Workers(threads, "part") if threads > 1 else None

    def forward(self, ids: Int64, mask: Int64, outputs: Sequence[Output]) -> PaddedOutputs:
        """Token ids and mask, int64[B, L] each, to the outputs asked for, without padding.

        Raises EncoderMemoryError where memory does not suffice.
        """
        present = mask.astype(np.bool_)
        offsets = offsets_of(mask.sum(1))
        try:
            states = self._states(ids[present].astype(np.int32), offsets)
        except MemoryError as error:
            raise EncoderMemoryError(f"{offsets[-1]} tokens: {error}") from None
        dense = sparse = colbert = None
        if "dense" in outputs:
            dense = _unit(_projected(_pooled(states, offsets, self._settings), self._dense_layers))
        if "sparse" in outputs and self._sparse is not None:
            sparse = np.empty(len(states), np.float32)
            weigh_tokens(states, self._sparse.weight[0], float(self._sparse.bias[0]), sparse)
        if "colbert" in outputs and self._colbert is not None and self._panels is not None:
            colbert = np.empty((len(states), len(self._colbert.bias)), np.float32)
            project_tokens(states, *self._panels, by_lanes(self._colbert.bias), colbert)
        return PaddedOutputs(dense, sparse, colbert)

    def _states(self, ids: Int32, offsets: Int64) -> Float32:
        """The last states float32[ΣL, D] of the tokens int32[ΣL] of some texts."""
        graph = self._graph
        states = graph.words.rows(ids)
        states += graph.positions[_positions(ids, offsets, self._pad_id if graph.counts_pads else None)]
        normalize_states(graph.norm.weights, graph.norm.biases, graph.epsilon, states)
        if self._pool is not None and len(offsets) == 2 and len(ids) >= SHARED_TOKENS:
            self._run_shared(self._pool, states)
        else:
            run_layers(self._layers, offsets, graph.heads, graph.epsilon, states)
        return states

    def _run_shared(self, pool: Workers, states: Float32) -> None:
        """The states float32[L, D] of one text after all layers, by threads that take some rows or heads."""
        graph, (tokens, width) = self._graph, states.shape
        rows = list(pairwise(np.linspace(0, tokens, self._threads + 1).astype(int).tolist()))
        heads = list(pairwise(np.linspace(0, graph.heads, self._threads + 1).astype(int).tolist()))
        projected = np.empty((tokens, 3 * width), np.float32)
        attended = np.empty((tokens, width), np.float32)
        for layer in self._layers:

            def project(part: tuple[int, int], layer: tuple[Record] = (layer,)) -> None:
                project_layer(layer, states[slice(*part)], projected[slice(*part)])

            def attend(part: tuple[int, int]) -> None:
                attend_with_heads(projected, graph.heads, *part, attended)

            def finish(part: tuple[int, int], layer: tuple[Record] = (layer,)) -> None:
                finish_layer(layer, graph.epsilon, attended[slice(*part)], states[slice(*part)])

            for step, parts in ((project, rows), (attend, heads), (finish, rows)):
                list(pool.map(step, parts))


def _require_width(graph: BertGraph, heads: HeadWeights, path: Path) -> None:
    """Raises CheckpointError where a head is for states of another width than a graph's."""
    width = graph.positions.shape[1]
    for name, head in (("sparse", heads.sparse), ("colbert", heads.colbert)):
        if head is not None and head.weight.shape[1] != width:
            raise CheckpointError(
                f"{path} gives states of {width} values, but {name}.weight has shape "
                f"{list(head.weight.shape)}; take the heads of this model"
            )


def _panels(graph: BertGraph) -> Iterator[Record]:
    """The layers as kernels take them, each let go of in the graph: their matrices are held once."""
    while graph.layers:
        yield _record(graph.layers.pop(0))
        graph.release()


def _record(layer: Layer) -> Record:
    def parts(linear: Linear) -> tuple[npt.NDArray[np.uint8], Float32, Float32]:
        return byte_panels(linear.numbers), by_lanes(linear.scales), by_lanes(linear.biases)

    return encoder_layer(
        *parts(layer.into),
        *parts(layer.out),
        by_lanes(layer.out_norm.weights),
        by_lanes(layer.out_norm.biases),
        *parts(layer.rise),
        *parts(layer.fall),
        by_lanes(layer.fall_norm.weights),
        by_lanes(layer.fall_norm.biases),
    )


def _positions(ids: Int32, offsets: Int64, pad_id: int | None) -> Int64:
    """The position of each token in its text, int64[ΣL].

    pad_id: that of RoBERTa's padding, behind which its positions begin, and which has none of its own; None
    for BERT, which counts from 0.
    """
    lengths = lengths_of(offsets)
    if pad_id is None:
        return np.arange(len(ids), dtype=np.int64) - np.repeat(offsets[:-1], lengths)
    counted = ids != pad_id
    before = np.concatenate([[0], np.cumsum(counted)])
    positions: Int64 = (before[1:] - np.repeat(before[offsets[:-1]], lengths)) * counted + pad_id
    return positions


def _pooled(states: Float32, offsets: Int64, settings: EncodingSettings) -> Float32:
    """A vector of each text, float32[B, D], as `tercet.models.heads.pool` makes it."""
    starts, lengths = offsets[:-1], lengths_of(offsets)
    pooled: Float32
    if settings.mcls_every is not None:
        position = np.arange(len(states)) - np.repeat(starts, lengths)
        is_last = position == np.repeat(lengths, lengths) - 1
        chosen = ((position % settings.mcls_every == 0) & ~is_last).astype(np.float32)
        counts = np.add.reduceat(chosen, starts)
        pooled = np.add.reduceat(states * chosen[:, None], starts, axis=0, dtype=np.float32)
        pooled /= counts[:, None]
    elif settings.pooling == "cls":
        pooled = states[starts]
    elif settings.pooling == "last":
        pooled = states[offsets[1:] - 1]
    else:
        pooled = np.add.reduceat(states, starts, axis=0, dtype=np.float32)
        pooled /= lengths.astype(np.float32)[:, None]
    return pooled


def _projected(vectors: Float32, layers: Layers) -> Float32:
    """Vectors float32[B, D] after linear layers: each by itself, so that none depends on those beside it."""
    for layer in layers:
        vectors = (layer.weight @ vectors[:, :, None])[:, :, 0]
        if layer.bias is not None:
            vectors += layer.bias
    return vectors


def _unit(vectors: Float32) -> Float32:
    """Vectors float32[B, D] of length 1."""
    norms = np.sqrt(np.square(vectors).sum(axis=1, keepdims=True))
    unit: Float32 = vectors / np.maximum(norms, np.float32(1e-12))
    return unit
