"""The engines of exported graphs, by kernels of our own or by onnxruntime, on CPU or CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tercet.models.adapters.graphs import AdapterGraphs
from tercet.models.adapters.library import AdapterLibrary, describe
from tercet.models.adapters.routing import MIXING_REFUSED
from tercet.models.adapters.settings import ADAPTER_SESSIONS
from tercet.models.batching import Adapters, PaddedOutputs, encode_in_batches
from tercet.models.checkpoint import CONFIG_FILE, hidden_size, read_json, read_settings
from tercet.models.cores import usable_cores
from tercet.models.device import choose_device
from tercet.models.encoder import AdapterDescription, EncoderInfo, Engine
from tercet.models.errors import AdapterNotServedError, UnsupportedError
from tercet.models.fingerprint import fingerprint, heads_digest
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.graph_engines import GraphEngine
from tercet.models.graphs.onnx_graph import Placement, has_cuda
from tercet.models.graphs.record import check_settings, choose_graph, read_export, verify_graph
from tercet.models.graphs.tables import TextRows
from tercet.models.lexical.query_table import QueryTable, encode_with_table, read_query_weights, sparse_size
from tercet.models.native.native_graph import NativeGraph
from tercet.models.representations import OUTPUTS, Int64, Output, Representations, Route, TokenBatch
from tercet.models.tokenizer import Tokenizer
from tercet.models.weights.head_weights import read_heads
from tercet.models.workers import Workers

# Small enough for a batch's activations to stay in the caches.
CPU_BATCH_TOKENS = 1024
CUDA_BATCH_TOKENS = 16384
# Shorter passes would read the weights for too few rows.
LEAST_PASS_TOKENS = 64


class OnnxEncoder:
    """An `Encoder` of an exported graph. precision: int8 or float32, by default what suits the device.

    engine: `native` for kernels of our own, which run int8 graphs of BERT's shape on a CPU, `onnxruntime`, or
    `onnx` for the former where they can and the latter elsewhere.
    adapters: folder of the adapters that may be asked for, each with a graph of its own; adapter_sessions:
    how many of these are open at a time.
    """

    mixes_adapters = False

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        engine: Engine = "onnx",
        origin: str | None = None,
        device: str = "auto",
        threads: int | None = None,
        batch_tokens: int | None = None,
        limit_tokens: int | None = None,
        precision: str | None = None,
        adapters: Path | None = None,
        adapter_sessions: int = ADAPTER_SESSIONS,
    ) -> None:
        kind, gpu = choose_device(
            device,
            cuda=has_cuda(),
            remedy="this onnxruntime has no CUDA provider; in an environment of its own: "
            "pip install -c constraints.txt -e '.[gpu]'",
        )
        settings = read_settings(folder)
        export = read_export(folder)
        if settings.tasks is not None:
            raise UnsupportedError(
                f"{folder}: the adapters of its tasks are in no graph; use the torch engine, or where "
                "queries and documents have one task, `tercet export FOLDER --output ANOTHER`"
            )
        wanted_precision = precision
        precision, graph = choose_graph(export, precision, kind)
        heads = read_heads(folder, hidden_size(folder))
        heads.require_dimension(settings.colbert_dimension, folder)
        if settings.splade is not None:
            heads.require_no_sparse(folder)
        self.tokenizer = Tokenizer.load(folder, settings)
        heads = replace(heads, queries=read_query_weights(folder, self.tokenizer))
        check_settings(folder, export, settings, heads_digest(heads.arrays()))
        size = sparse_size(folder, self.tokenizer, heads)
        self._queries = QueryTable.of(heads.queries, self.tokenizer)
        threads = threads or usable_cores()
        placement = Placement(kind, gpu, threads)
        path = verify_graph(folder, graph)
        rows = TextRows.of(read_json(transformer_folder(folder) / CONFIG_FILE), self.tokenizer)
        opener = GraphEngine(engine, placement, settings, rows, size)
        self._graph = opener.open(path, precision, heads)
        native = isinstance(self._graph, NativeGraph)
        # A pass of ours takes one thread. While one of onnxruntime's is in a part that does not split over
        # threads, another uses them.
        passes = threads if native else 2
        self._pool = Workers(passes, "batch") if kind == "cpu" and threads > 1 else None
        self._passes = passes if native and self._pool else 1
        suited = batch_tokens or (CUDA_BATCH_TOKENS if kind == "cuda" else CPU_BATCH_TOKENS)
        self.pass_tokens = suited if limit_tokens is None else min(suited, limit_tokens)
        self.pads = not native
        fingerprint_of = partial(fingerprint, export.weights, export.heads, self.tokenizer.digest, settings)
        self.info = EncoderInfo(
            name=name,
            fingerprint=fingerprint_of(graph.files[graph.file] if precision == "int8" else None),
            engine="native" if native else "onnxruntime",
            precision=precision,
            dense_dimension=heads.dense_dimension(hidden_size(folder), settings.pooling),
            colbert_dimension=heads.colbert_dimension,
            vocabulary_size=size,
            max_length=settings.max_length,
            pooling=settings.pooling,
            lexical=settings.lexical,
            checkpoint=origin,
        )
        with_adapters = adapters if settings.splade is None else None
        library = AdapterLibrary(with_adapters, folder, name, fingerprint_of(), heads.sizes)
        self._adapters = AdapterGraphs(library, export, opener, heads, wanted_precision, adapter_sessions)
        self._fingerprint_of = fingerprint_of

    def adapter_info(self, name: str) -> EncoderInfo:
        """What identifies this encoder with an adapter, whose graph is checked at its first use."""
        graph = self._adapters.get(name)
        return replace(
            self.info,
            fingerprint=self._fingerprint_of(graph.quantized, graph.digest),
            precision=graph.precision,
            adapter=name,
        )

    def describe_adapters(self) -> list[AdapterDescription]:
        """All adapters, in order of name."""
        return describe(self._adapters.library, self.adapter_info)

    def resolve_adapter(self, name: str, collection: str | None = None) -> str | None:
        """The name itself: an engine has no routers."""
        return name

    @property
    def library(self) -> AdapterLibrary:
        """The adapters that it can use."""
        return self._adapters.library

    def encode_tokens(
        self,
        batch: TokenBatch,
        outputs: Sequence[Output] = OUTPUTS,
        adapters: Adapters | None = None,
    ) -> Representations:
        """Representations of each text of the batch, in the batch's order; each pass has one adapter."""
        for adapter in set(adapters or ()):
            if adapter is not None:
                self._adapters.get(_single(adapter))

        def encode(texts: TokenBatch, wanted: Sequence[Output]) -> Representations:
            return encode_in_batches(
                texts,
                wanted,
                self._budget(texts),
                self.tokenizer,
                self.info,
                self._forward,
                self._pool,
                adapters if self._queries is None else None,  # with a table there are none
                pads=self.pads,
            )

        return encode_with_table(self._queries, batch, self.info.given(outputs), encode)

    def _budget(self, batch: TokenBatch) -> int:
        """Tokens of a pass: few enough for every thread to have one, where a pass takes one thread."""
        share = -(-len(batch.token_ids) // self._passes)
        return min(self.pass_tokens, max(share, LEAST_PASS_TOKENS))

    def _forward(
        self, ids: Int64, mask: Int64, outputs: Sequence[Output], adapters: Adapters
    ) -> PaddedOutputs:
        adapter = adapters[0]  # that of all rows, since passes of this engine mix none
        graph = self._graph if adapter is None else self._adapters.open(_single(adapter))
        return graph.forward(ids, mask, outputs)


def _single(adapter: str | Route) -> str:
    """The adapter. Raises AdapterNotServedError for several by weight."""
    if isinstance(adapter, Route):
        raise AdapterNotServedError(f"{list(adapter.adapters)} cannot be mixed: {MIXING_REFUSED}")
    return adapter
