"""Writes a checkpoint, alone or with an adapter, as an ONNX graph, and checks it against torch."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, RemoveUnusedNodesPass

from tercet.models.adapters.body import FixedAdapters, fold, install, load_parts
from tercet.models.batching import encode_in_batches
from tercet.models.checkpoint import (
    CONFIG_FILE,
    SETTINGS_FILE,
    TOKENIZER_CONFIG,
    EncodingSettings,
    read_settings,
)
from tercet.models.cores import usable_cores
from tercet.models.encoder import Encoder, encode_tokens, with_adapter
from tercet.models.errors import CheckpointError, EncoderMemoryError, UnsupportedError, reason
from tercet.models.export.attention import ATTENTION, register
from tercet.models.export.attention_mask import choose_blocks_at_run_time, choose_mask_at_run_time
from tercet.models.files import UNFINISHED, alone
from tercet.models.fingerprint import file_digest, fingerprint, heads_digest
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.formats.splade import HIDDEN
from tercet.models.graph_engines import open_graph
from tercet.models.graphs.onnx_graph import Placement
from tercet.models.graphs.onnx_splade import JOINED, MASK, head_file
from tercet.models.graphs.record import (
    FOLDER,
    GRAPH_FILES,
    Export,
    Graph,
    body_digest,
    packed_graph,
    read_export,
    remove_export,
    verify_graph,
    write_export,
)
from tercet.models.heads import Heads
from tercet.models.int8.loss import kept as kept_of
from tercet.models.int8.quantize import is_identified, quantize
from tercet.models.lexical.query_table import read_query_weights
from tercet.models.onnx_encoder import CPU_BATCH_TOKENS
from tercet.models.representations import (
    OUTPUTS,
    Float32,
    Int32,
    Output,
    Representations,
    SparseRows,
    TokenBatch,
)
from tercet.models.tasks import tasks_in
from tercet.models.tokenizer import TOKENIZER_FILES, Tokenizer
from tercet.models.torch_encoder import EncoderModel, TorchEncoder, load_model
from tercet.models.torch_memory import OUT_OF_MEMORY
from tercet.models.weights.head_weights import HeadWeights, write_heads
from tercet.models.weights.static_files import is_static

# Files that an export has in common with its source, where that has them; the last is the model card.
COPIED_FILES = (*TOKENIZER_FILES, TOKENIZER_CONFIG, "special_tokens_map.json", "README.md")
# A protobuf message ends at 2 GB; larger weights go to a file beside the graph.
SINGLE_FILE_BYTES = 1_500_000_000
# Engines of one checkpoint agree within this in float32; more means a wrong graph, not rounding. How much
# int8 loses depends on the model, but what it gives must be finite.
LARGEST_DIFFERENCES = {"float32": 1e-3, "int8": sys.float_info.max}
# Of texts by which int8 weights are rounded: more change them no more.
CALIBRATION_TOKENS = 16_384
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


def export(
    checkpoint: Path,
    output: Path,
    *,
    int8: bool,
    calibration: Sequence[str] = (),
    heads_of: Path | None = None,
) -> ExportReport:
    """Writes an exported graph into `output`, itself a checkpoint for the onnx engine, and verifies it.

    int8: as `tercet.models.int8.quantize`; otherwise float32. calibration: texts by which int8 weights are
    rounded;
    heads_of: folder of another checkpoint, whose heads take the place of its own. Another precision exported
    there before from the same source stays. Raises CheckpointError where the checkpoint is incomplete, and
    UnsupportedError where the float32 graph does not give what torch gives, or the int8 graph gives no finite
    numbers; the graph is removed then.
    """
    if is_static(checkpoint):
        raise UnsupportedError(
            f"{checkpoint} holds static embeddings, which have no graph; serve it as it is"
        )
    settings = read_settings(checkpoint)
    _require_one_task(checkpoint, output, settings)
    require_float_weights(checkpoint, int8=int8)
    model = load_model(checkpoint, settings, heads_of=heads_of)
    tokenizer = Tokenizer.load(checkpoint, settings)
    heads = replace(model.heads.weights(), queries=read_query_weights(checkpoint, tokenizer))
    source = _source_of(checkpoint, settings, heads)
    rounding = _rounding(checkpoint, tokenizer, calibration) if int8 else None
    with _alone_in(output):
        _copy_files(checkpoint, output, replace(settings, tasks=None))
        if heads.arrays():
            write_heads(output, heads)
        precision, graph = _write(model, output, rounding)
        reference = TorchEncoder(checkpoint, checkpoint.name, heads=heads_of, device="cpu")
        return _verify(reference, output, source, precision, graph)


def export_adapter(
    checkpoint: Path, adapter: Path, *, int8: bool, calibration: Sequence[str] = ()
) -> ExportReport:
    """Writes a graph of a checkpoint with an adapter into the adapter's folder, and verifies it.

    LoRA and (IA)³ become part of the weights, so that the graph is as fast as the base's; bottlenecks and
    prefixes are in the graph. The parts of a stack are taken from the folders beside it.
    Raises as `export`, and AdapterUnusableError where the adapter is damaged or of another base.
    """
    settings = read_settings(checkpoint)
    if settings.splade is not None:
        raise UnsupportedError(
            f"{checkpoint} has lexical weights by SPLADE, and adapters need linear heads; take another base"
        )
    require_float_weights(checkpoint, int8=int8)
    reference = TorchEncoder(checkpoint, checkpoint.name, device="cpu", adapters=adapter.parent)
    encoder = with_adapter(reference, adapter.name)
    model = load_model(checkpoint, settings)
    source = _source_of(checkpoint, settings, model.heads.weights())
    resolved = reference.adapter(adapter.name)
    model.heads = Heads.from_weights(resolved.heads or model.heads.weights(), settings)
    rest = fold(model.body, load_parts(resolved, model.body))
    if rest:
        install(model.body, FixedAdapters(rest))
    source = replace(source, adapter=resolved.digest)
    rounding = _rounding(checkpoint, reference.tokenizer, calibration) if int8 else None
    with _alone_in(adapter):
        precision, graph = _write(model, adapter, rounding)
        return _verify(encoder, adapter, source, precision, graph)


@contextmanager
def _alone_in(output: Path) -> Iterator[None]:
    """No other export writes to a folder meanwhile; what one left that was killed is gone."""
    (output / FOLDER).mkdir(parents=True, exist_ok=True)
    with alone(output / FOLDER / ".lock", f"another export writes to {output}"):
        for stale in output.glob(f"{UNFINISHED}*"):
            shutil.rmtree(stale)
        yield


def require_float_weights(checkpoint: Path, *, int8: bool) -> None:
    """Raises UnsupportedError where a float32 graph would have to be made of 8-bit weights."""
    if not int8 and packed_graph(checkpoint) is not None:
        raise UnsupportedError(
            f"{checkpoint} holds only an int8 graph, whose rounding a float32 graph would keep; "
            "export with --int8"
        )


def _require_one_task(checkpoint: Path, output: Path, settings: EncodingSettings) -> None:
    """Raises UnsupportedError where texts of one graph would need the adapters of two tasks, or where those
    beside it would be taken for its own.
    """
    if settings.tasks is not None and not settings.tasks.is_one:
        raise UnsupportedError(
            f"{checkpoint} has an adapter for queries and another for documents, and a graph has the weights "
            f"of one; use the torch engine, or name one task for both in {SETTINGS_FILE}"
        )
    if tasks_in(checkpoint) and output.resolve() == checkpoint.resolve():
        raise UnsupportedError(
            f"{checkpoint} has adapters by task beside it, which its graph does not take; give another output"
        )


def _source_of(checkpoint: Path, settings: EncodingSettings, heads: HeadWeights) -> Export:
    """The record of an export that has no graphs yet."""
    weights = body_digest(checkpoint, settings.tasks)
    splade = None if settings.splade is None else settings.splade.of_graph
    digest = heads_digest(heads.arrays())
    return Export(weights, digest, settings.pooling, settings.mcls_every, {}, splade=splade)


@dataclass(frozen=True, slots=True)
class _Rounding:
    """How int8 weights are rounded: as `quantize` takes it."""

    texts: Sequence[Int32]
    identified: bool


def _rounding(checkpoint: Path, tokenizer: Tokenizer, texts: Sequence[str]) -> _Rounding:
    """By texts as documents, up to CALIBRATION_TOKENS; weights of 8 bits alone stay what they are."""
    packed = packed_graph(checkpoint)
    if packed is not None:
        return _Rounding([], is_identified(checkpoint / FOLDER / packed.file))
    batch = tokenizer.tokenize(texts)
    kept = int(np.searchsorted(batch.offsets[1:], CALIBRATION_TOKENS, side="right"))
    return _Rounding(np.split(batch.token_ids, batch.offsets[1:-1])[:kept], identified=False)


def _write(model: EncoderModel, output: Path, rounding: _Rounding | None) -> tuple[str, Graph]:
    """Writes an int8 graph, or a float32 one without a rounding; returns the precision and its files."""
    precision = "float32" if rounding is None else "int8"
    path = output / FOLDER / GRAPH_FILES[precision]
    paths = [path] if model.splade is None else [path, head_file(path)]
    for stale in (path, head_file(path)):
        for file in (stale, _data_file(stale)):
            file.unlink(missing_ok=True)
    if rounding is None:
        write_graph(model, path)
    else:
        with tempfile.TemporaryDirectory(dir=output, prefix=UNFINISHED) as scratch:
            source = Path(scratch) / GRAPH_FILES["float32"]
            write_graph(model, source)
            quantize(source, path, rounding.texts, identified=rounding.identified)
            if model.splade is not None:  # rounded to the nearest, so as its weights and no texts say
                quantize(head_file(source), head_file(path))
    digests = {name: digest for each in paths for name, digest in _digests(each).items()}
    return precision, Graph(path.name, digests, {})


def write_graph(model: EncoderModel, path: Path) -> None:
    """Traces the model to a float32 graph with inputs input_ids and attention_mask, int64[B, L] each.

    Outputs as `EncoderModel.forward`. Attention becomes one fused operator of onnxruntime, where the body has
    one that can be replaced. The head of SPLADE becomes a graph of its own, beside it.
    Raises UnsupportedError where torch or onnx cannot say the model.
    """
    register()
    ids = torch.full((2, 8), 4, dtype=torch.int64)
    mask = torch.ones_like(ids)
    body: Any = model.body
    former = body.config._attn_implementation
    replaced = former != "eager"
    if replaced:
        body.set_attn_implementation(ATTENTION)
    try:
        traced = {"input_ids": ids, "attention_mask": mask}
        _trace(model, traced, model.output_names, path, (model.body, model.heads))
        if model.splade is not None:
            with torch.inference_mode():
                hidden = model.hidden(ids, mask).clone()
            _trace(model.splade, {HIDDEN: hidden, MASK: mask}, [JOINED], head_file(path), (model.splade,))
    except (MemoryError, OSError):  # of this machine, not of the model
        raise
    except Exception as error:  # the exporter's own failures have no common class
        if any(words in str(error) for words in OUT_OF_MEMORY):
            raise EncoderMemoryError(
                f"the export needs more memory than there is: {reason(error)}"
            ) from error
        raise UnsupportedError(
            f"{type(body).__name__} cannot be exported ({reason(error)}); use the torch engine"
        ) from error
    finally:
        if replaced:
            body.set_attn_implementation(former)


def _trace(
    model: torch.nn.Module,
    inputs: dict[str, torch.Tensor],
    outputs: Sequence[str],
    path: Path,
    parts: Sequence[torch.nn.Module],
) -> None:
    """Writes the graph of a module, whose inputs may have any number of texts and tokens, their first axes.

    parts: of the module that go into it.
    """
    dynamic = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    size = sum(parameter.nbytes for part in parts for parameter in part.parameters())
    with _quiet():
        program = torch.onnx.export(
            model,
            tuple(inputs.values()),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=(dynamic,) * len(inputs),
            dynamo=True,
            verbose=False,
        )
        if program is None:
            raise UnsupportedError("torch exported no graph")
        # The exporter notes each node's source line; a graph should name no path of this machine.
        ClearMetadataAndDocStringPass()(program.model)
        choose_mask_at_run_time(program.model.graph)
        choose_blocks_at_run_time(program.model.graph)
        RemoveUnusedNodesPass()(program.model)
        program.save(str(path), external_data=size > SINGLE_FILE_BYTES)


def largest_differences(one: Representations, other: Representations) -> dict[str, float]:
    """Largest absolute difference of each output of the same texts.

    A lexical weight that only one side has counts in full.
    """
    differences = {}
    if one.dense is not None and other.dense is not None:
        differences["dense"] = _largest(one.dense - other.dense)
    if one.sparse is not None and other.sparse is not None:
        differences["sparse"] = _sparse_difference(one.sparse, other.sparse)
    if one.colbert is not None and other.colbert is not None:
        differences["colbert"] = _largest(one.colbert.vectors - other.colbert.vectors)
    return differences


def _largest(values: Float32) -> float:
    return float(np.abs(values).max(initial=0.0))


def _sparse_difference(one: SparseRows, other: SparseRows) -> float:
    size = 1 + int(max(one.token_ids.max(initial=0), other.token_ids.max(initial=0)))
    largest = 0.0
    for row in range(len(one)):
        dense = np.zeros(size, np.float32)
        ids, weights = one.row(row)
        dense[ids] = weights
        ids, weights = other.row(row)
        dense[ids] -= weights
        largest = max(largest, _largest(dense))
    return largest


def _verify(reference: Encoder, output: Path, source: Export, precision: str, graph: Graph) -> ExportReport:
    """Compares a graph with torch on varied texts; records it where it holds, and removes it where not."""
    kept = {name: other for name, other in _graphs_of(source, output).items() if name != precision}
    limit = LARGEST_DIFFERENCES[precision]
    try:
        expected = encode_tokens(reference, _verified_tokens(reference.tokenizer))
        found = _encode_with(verify_graph(output, graph), reference)
        differences = largest_differences(expected, found)
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
        kept=kept_of(expected, found),
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


def _copy_files(checkpoint: Path, output: Path, settings: EncodingSettings) -> None:
    """Configuration, tokenizer and settings: all that the graph's folder needs beside it."""
    transformer = transformer_folder(checkpoint)
    for name in (CONFIG_FILE, *COPIED_FILES):
        source = transformer / name
        if source.is_file() and source.resolve() != (output / name).resolve():
            shutil.copyfile(source, output / name)
    text = json.dumps(settings.to_json(), indent=2, ensure_ascii=False)
    (output / SETTINGS_FILE).write_text(text + "\n", encoding="utf-8")


def _data_file(graph: Path) -> Path:
    """Where a large graph keeps its weights."""
    return graph.with_name(graph.name + ".data")


def _digests(graph: Path) -> dict[str, str]:
    return {path.name: file_digest(path) for path in (graph, _data_file(graph)) if path.exists()}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the exporter's notes on its own internals and what it prints; failures still raise."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
