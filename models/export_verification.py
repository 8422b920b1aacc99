"""An exported graph beside torch, on varied texts: recorded where it gives the same, else removed."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tercet.models.batching import encode_in_batches
from tercet.models.cores import usable_cores
from tercet.models.encoder import Encoder, encode_tokens
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.fingerprint import fingerprint
from tercet.models.graph_engines import open_graph
from tercet.models.graphs.onnx_graph import Placement
from tercet.models.graphs.record import (
    FOLDER,
    Export,
    Graph,
    read_export,
    remove_export,
    verify_graph,
    write_export,
)
from tercet.models.int8.loss import kept as kept_of
from tercet.models.onnx_encoder import CPU_BATCH_TOKENS
from tercet.models.representations import (
    OUTPUTS,
    Float32,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
)
from tercet.models.tokenizer import Tokenizer

# Engines of one checkpoint agree within this in float32; more means a wrong graph, not rounding. How much
# int8 loses depends on the model, but what it gives must be finite.
LARGEST_DIFFERENCES = {"float32": 1e-3, "int8": sys.float_info.max}
VERIFIED_TEXTS = (
    "",
    "Hello, world!",
    "An encoder gives a dense vector, lexical weights, and one vector for every token of a text.",
    "밤하늘의 별은 왜 반짝이는가? 대기의 흔들림 때문이다.",
    "東京都は日本の首都である。人口は約千四百万人。",
    "Der Zug fährt um 18:45 Uhr ab; die Fahrt dauert 3½ Stunden.",
    "def area(r): return 3.14159 * r ** 2  # 🙂",
    "wing flow pressure boundary layer heat transfer supersonic speed " * 12,
    "одна короткая строка, and then English again. " * 60,
)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written. differences: largest absolute difference from torch float32 of each output; kept: how
    much of each is left, as `tercet.models.int8.loss.kept`.
    """

    folder: Path
    graph: Path
    precision: str
    graph_bytes: int
    fingerprint: str
    texts: int
    differences: dict[str, float]
    kept: dict[Output, float]


def largest_differences(reference: Representations, other: Representations) -> dict[str, float]:
    """Largest absolute difference of each output of the same texts.

    A lexical weight that only one side has counts in full.
    """
    differences = {}
    if reference.dense is not None and other.dense is not None:
        differences["dense"] = _largest(reference.dense - other.dense)
    if reference.sparse is not None and other.sparse is not None:
        differences["sparse"] = _sparse_difference(reference.sparse, other.sparse)
    if reference.colbert is not None and other.colbert is not None:
        differences["colbert"] = _largest(reference.colbert.vectors - other.colbert.vectors)
    return differences


def _largest(values: Float32) -> float:
    return float(np.abs(values).max(initial=0.0))


def _sparse_difference(reference: SparseRows, other: SparseRows) -> float:
    size = 1 + int(max(reference.token_ids.max(initial=0), other.token_ids.max(initial=0)))
    largest = 0.0
    for row in range(len(reference)):
        dense = np.zeros(size, np.float32)
        ids, weights = reference.row(row)
        dense[ids] = weights
        ids, weights = other.row(row)
        dense[ids] -= weights
        largest = max(largest, _largest(dense))
    return largest


def verify(reference: Encoder, output: Path, source: Export, precision: str, graph: Graph) -> ExportReport:
    """Compares a graph with torch on varied texts; records it where it holds, and removes it where not."""
    kept = {name: other for name, other in _graphs_of(source, output).items() if name != precision}
    limit = LARGEST_DIFFERENCES[precision]
    try:
        expected = encode_tokens(reference, _verified_tokens(reference.tokenizer))
        encoded = _encode_with(verify_graph(output, graph), reference)
        differences = largest_differences(expected, encoded)
        if not all(difference <= limit for difference in differences.values()):  # NaN is not within it either
            raise UnsupportedError(
                f"the {precision} graph of {reference.info.name} differs from torch by {differences}, more "
                f"than {limit:g}; this model cannot be exported so, use the torch engine"
            )
    except BaseException:
        for name in graph.files:
            (output / FOLDER / name).unlink(missing_ok=True)
        if kept:
            write_export(output, replace(source, graphs=kept))
        else:
            remove_export(output)
        raise
    graph = replace(graph, differences=differences)
    write_export(output, replace(source, graphs={**kept, precision: graph}))
    return ExportReport(
        folder=output,
        graph=output / FOLDER / graph.file,
        precision=precision,
        graph_bytes=sum((output / FOLDER / name).stat().st_size for name in graph.files),
        fingerprint=fingerprint(
            source.weights,
            source.heads,
            reference.tokenizer.digest,
            reference.tokenizer.settings,
            graph.files[graph.file] if precision == "int8" else None,
            source.adapter,
        ),
        texts=len(VERIFIED_TEXTS),
        differences=differences,
        kept=kept_of(expected, encoded),
    )


def _graphs_of(source: Export, output: Path) -> dict[str, Graph]:
    """The graphs exported there before from the same source; none where their record cannot be read, which
    to export again is the remedy for.
    """
    try:
        former = read_export(output)
    except CheckpointError:
        return {}
    return former.graphs if former.same_source(source) else {}


def _encode_with(path: Path, reference: Encoder) -> Representations:
    """What a graph gives for the texts that every graph is verified on."""
    placement = Placement("cpu", 0, usable_cores())
    graph = open_graph(path, placement, reference.info.vocabulary_size, reference.tokenizer.settings)
    return encode_in_batches(
        _verified_tokens(reference.tokenizer),
        OUTPUTS,
        CPU_BATCH_TOKENS,
        reference.tokenizer,
        reference.info,
        lambda ids, mask, outputs, _: graph.forward(ids, mask, outputs),
    )


def _verified_tokens(tokenizer: Tokenizer) -> TokenBatch:
    """The texts that every graph is verified on; as queries, too, where these are unlike documents."""
    documents = tokenizer.tokenize(VERIFIED_TEXTS)
    if tokenizer.settings.late_interaction is None:
        return documents
    return TokenBatch.concatenate([documents, tokenizer.tokenize(VERIFIED_TEXTS, "query")])
