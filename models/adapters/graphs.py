"""The adapters of an onnx encoder: each has an exported graph in its folder, and few are open at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from tercet.models.adapters.library import AdapterLibrary
from tercet.models.adapters.settings import PAIR_MARK
from tercet.models.errors import (
    AdapterNotServedError,
    AdapterUnusableError,
    CheckpointError,
    UnsupportedError,
)
from tercet.models.graph_engines import GraphEngine, OpenGraph
from tercet.models.graphs.record import Export, Graph, choose_graph, has_export, read_export, verify_graph
from tercet.models.weights.head_weights import HeadWeights


@dataclass(frozen=True, slots=True)
class AdapterGraph:
    """The graph of an adapter. folder: the adapter's; digest: the adapter's."""

    folder: Path
    graph: Graph
    precision: str
    digest: str

    @property
    def quantized(self) -> str | None:
        """Digest of an int8 graph, None in float32."""
        return self.graph.files[self.graph.file] if self.precision == "int8" else None

    def verified(self) -> Path:
        """Its path; every file is as exported. Raises AdapterUnusableError."""
        try:
            return verify_graph(self.folder, self.graph)
        except CheckpointError as error:
            raise AdapterUnusableError(f"adapter {self.folder.name!r} cannot be used: {error}") from error


class AdapterGraphs:
    """Finds and opens adapters' graphs. Safe to use from several threads."""

    def __init__(
        self,
        library: AdapterLibrary,
        base: Export,
        engine: GraphEngine,
        heads: HeadWeights,
        precision: str | None,
        sessions: int,
    ) -> None:
        """base: the export of the base checkpoint; engine: what opens graphs; heads: of the base, which those
        adapters have that bring none; precision: the one to take, or None for what suits.
        """
        self.library = library
        self._base = base
        self._engine = engine
        self._heads = heads
        self._precision = precision
        self._sessions = sessions
        self._lock = threading.Lock()
        self._graphs: dict[str, AdapterGraph] = {}
        self._open: OrderedDict[str, OpenGraph] = OrderedDict()

    def get(self, name: str) -> AdapterGraph:
        """The graph of an adapter, checked at its first use.

        Raises as `AdapterLibrary.get`, and AdapterNotServedError where it has no graph for this engine. The
        native engine opens it, as it cannot tell without reading it.
        """
        resolved = self.library.get(name)
        with self._lock:
            if name not in self._graphs:
                graph = self._find(name, resolved.digest)
                if self._engine.engine == "native":
                    self._opened(name, graph, resolved.heads)
                self._graphs[name] = graph
            return self._graphs[name]

    def open(self, name: str) -> OpenGraph:
        """The open graph of an adapter; the one that was not used for longest is closed to make room."""
        graph = self.get(name)
        with self._lock:
            return self._opened(name, graph, self.library.get(name).heads)

    def _opened(self, name: str, graph: AdapterGraph, heads: HeadWeights | None) -> OpenGraph:
        """heads: of its own, or None for those of the base."""
        if name not in self._open:
            while len(self._open) >= self._sessions:
                self._open.popitem(last=False)  # a pass under way holds its graph until it is done
            # Checked again: while it was closed it may have been exported anew.
            path = graph.verified()
            try:
                self._open[name] = self._engine.open(path, graph.precision, heads or self._heads)
            except UnsupportedError as error:
                raise AdapterNotServedError(f"adapter {name!r}: {error}") from error
        self._open.move_to_end(name)
        return self._open[name]

    def _find(self, name: str, digest: str) -> AdapterGraph:
        if PAIR_MARK in name:
            raise AdapterNotServedError(
                f"adapter {name!r} is made of others, and has no graph; use the torch engine "
                "or export what `tercet adapters stack` makes of both, or `tercet adapters generate` of a "
                "hypernetwork, and name that"
            )
        folder = self.library.folder(name)
        if not has_export(folder):
            raise AdapterNotServedError(
                f"adapter {name!r} has no exported graph, which the onnx engine needs: make one with "
                "`tercet export BASE --adapter FOLDER` (--int8 where the base has only an int8 graph), or "
                "use the torch engine"
            )
        try:
            export = read_export(folder)
            if export.adapter != digest or not export.same_base(self._base):
                raise CheckpointError(
                    f"{folder}: its graph was exported before the adapter or its base changed; export it "
                    "again with `tercet export BASE --adapter FOLDER`"
                )
        except CheckpointError as error:
            raise AdapterUnusableError(f"adapter {name!r} cannot be used: {error}") from error
        try:
            precision, graph = choose_graph(export, self._precision, self._engine.placement.kind)
        except UnsupportedError as error:
            raise AdapterNotServedError(f"adapter {name!r}: {error}") from error
        adapter_graph = AdapterGraph(folder, graph, precision, digest)
        adapter_graph.verified()
        return adapter_graph
