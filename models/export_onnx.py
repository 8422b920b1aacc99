"""Writes a checkpoint, alone or with an adapter, as an ONNX graph, and checks it against torch."""

from __future__ import annotations

import json
import logging
import shutil
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

from tercet.models.adapters.body import FixedAdapters, fold, install
from tercet.models.adapters.parts import load_parts
from tercet.models.checkpoint import (
    CONFIG_FILE,
    SETTINGS_FILE,
    TOKENIZER_CONFIG,
    EncodingSettings,
    read_settings,
)
from tercet.models.encoder import with_adapter
from tercet.models.encoder_model import EncoderModel, load_model
from tercet.models.errors import EncoderMemoryError, UnsupportedError, reason
from tercet.models.export.attention import ATTENTION, register
from tercet.models.export.attention_mask import choose_blocks_at_run_time, choose_mask_at_run_time
from tercet.models.export_verification import ExportReport, verify
from tercet.models.files import UNFINISHED, alone
from tercet.models.fingerprint import file_digest, heads_digest
from tercet.models.formats.sparse_modules import transformer_folder
from tercet.models.formats.splade import HIDDEN
from tercet.models.graphs.onnx_splade import JOINED, MASK, head_file
from tercet.models.graphs.record import (
    FOLDER,
    GRAPH_FILES,
    Export,
    Graph,
    body_digest,
    packed_graph,
)
from tercet.models.heads import Heads
from tercet.models.int8.quantize import Progress, is_identified, quantize, unreported
from tercet.models.lexical.query_table import read_query_weights
from tercet.models.representations import (
    Int32,
)
from tercet.models.tasks import tasks_in
from tercet.models.tokenizer import TOKENIZER_FILES, Tokenizer
from tercet.models.torch_encoder import TorchEncoder
from tercet.models.torch_memory import OUT_OF_MEMORY
from tercet.models.weights.head_weights import HeadWeights, write_heads
from tercet.models.weights.static_files import is_static

# Files that an export has in common with its source, where that has them; the last is the model card.
COPIED_FILES = (*TOKENIZER_FILES, TOKENIZER_CONFIG, "special_tokens_map.json", "README.md")
# A protobuf message ends at 2 GB; larger weights go to a file beside the graph.
SINGLE_FILE_BYTES = 1_500_000_000
# Of texts by which int8 weights are rounded: more change them no more.
CALIBRATION_TOKENS = 16_384


def export(
    checkpoint: Path,
    output: Path,
    *,
    int8: bool,
    calibration: Sequence[str] = (),
    heads_of: Path | None = None,
    mcls_every: int | None = None,
    report: Progress = unreported,
) -> ExportReport:
    """Writes an exported graph into `output`, itself a checkpoint for the onnx engine, and verifies it.

    int8: as `tercet.models.int8.quantize`; otherwise float32. calibration: texts by which int8 weights are
    rounded;
    heads_of: folder of another checkpoint, whose heads take the place of its own; mcls_every: in the place of
    the checkpoint's own; report: is told how far the rounding to int8 is. Another precision exported
    there before from the same source stays. Raises CheckpointError where the checkpoint is incomplete, and
    UnsupportedError where the float32 graph does not give what torch gives, or the int8 graph gives no finite
    numbers; the graph is removed then.
    """
    if is_static(checkpoint):
        raise UnsupportedError(
            f"{checkpoint} holds static embeddings, which have no graph; serve it as it is"
        )
    settings = read_settings(checkpoint, mcls_every)
    _require_single_task(checkpoint, output, settings)
    require_float_weights(checkpoint, int8=int8)
    model = load_model(checkpoint, settings, heads_of=heads_of)
    tokenizer = Tokenizer.load(checkpoint, settings)
    heads = replace(model.heads.weights(), queries=read_query_weights(checkpoint, tokenizer))
    source = _source_of(checkpoint, settings, heads)
    rounding = _rounding(checkpoint, tokenizer, calibration, report) if int8 else None
    with _alone_in(output):
        _copy_files(checkpoint, output, replace(settings, tasks=None))
        if heads.arrays():
            write_heads(output, heads)
        precision, graph = _write(model, output, rounding)
        reference = TorchEncoder(
            checkpoint, checkpoint.name, heads=heads_of, mcls_every=mcls_every, device="cpu"
        )
        return verify(reference, output, source, precision, graph)


def export_adapter(
    checkpoint: Path,
    adapter: Path,
    *,
    int8: bool,
    calibration: Sequence[str] = (),
    report: Progress = unreported,
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
    rounding = _rounding(checkpoint, reference.tokenizer, calibration, report) if int8 else None
    with _alone_in(adapter):
        precision, graph = _write(model, adapter, rounding)
        return verify(encoder, adapter, source, precision, graph)


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


def _require_single_task(checkpoint: Path, output: Path, settings: EncodingSettings) -> None:
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
    report: Progress


def _rounding(checkpoint: Path, tokenizer: Tokenizer, texts: Sequence[str], report: Progress) -> _Rounding:
    """By texts as documents, up to CALIBRATION_TOKENS; weights of 8 bits alone stay what they are."""
    packed = packed_graph(checkpoint)
    if packed is not None:
        return _Rounding([], is_identified(checkpoint / FOLDER / packed.file), report)
    batch = tokenizer.tokenize(texts)
    kept = int(np.searchsorted(batch.offsets[1:], CALIBRATION_TOKENS, side="right"))
    return _Rounding(np.split(batch.token_ids, batch.offsets[1:-1])[:kept], False, report)


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
            quantize(source, path, rounding.texts, rounding.report, identified=rounding.identified)
            if model.splade is not None:  # rounded to the nearest, so as its weights and no texts say
                quantize(head_file(source), head_file(path))
    digests = {name: digest for path in paths for name, digest in _digests(path).items()}
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
