"""Opens a checkpoint with the engine asked for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from tercet.models.adapters.routing import with_routers
from tercet.models.adapters.settings import ADAPTER_SESSIONS
from tercet.models.checkpoint import (
    checkpoint_name,
    checkpoint_origin,
    hidden_size,
    read_settings,
    resolve_checkpoint,
)
from tercet.models.encoder import Encoder, Engine, encode
from tercet.models.errors import (
    CheckpointError,
    EncoderFailedError,
    UnsupportedError,
    reason,
)
from tercet.models.export_cache import cached_export
from tercet.models.fingerprint import heads_digest
from tercet.models.formats.sentence_transformers import similarity_lost
from tercet.models.graphs.onnx_file import BROKEN
from tercet.models.graphs.record import has_export, read_export
from tercet.models.representations import OUTPUTS
from tercet.models.static_encoder import StaticEncoder
from tercet.models.tasks import tasks_in
from tercet.models.tokenizer import Tokenizer
from tercet.models.variants import Variant
from tercet.models.weights.head_weights import read_heads
from tercet.models.weights.static_files import is_static, read_static

if TYPE_CHECKING:
    from tercet.models.onnx_encoder import OnnxEncoder
    from tercet.models.torch_encoder import TorchEncoder

log = logging.getLogger("tercet")

TRIAL_TEXT = "a"  # which each encoder has encoded before it is handed out


class EngineOptions(TypedDict, total=False):
    """How an engine runs. device: auto, cpu or cuda; threads: CPU threads of one pass, by default
    `usable_cores`; batch_tokens: padded tokens of one pass, by default what suits engine and device;
    limit_tokens: no more than these, where the default is more; adapters: folder of the adapters and routers
    that may be asked for.
    """

    device: str
    threads: int | None
    batch_tokens: int | None
    limit_tokens: int | None
    adapters: Path | None


def load_encoder(
    checkpoint: str,
    engine: Engine = "onnx",
    *,
    revision: str | None = None,
    heads: str | None = None,
    mcls_every: int | None = None,
    precision: str | None = None,
    adapter_sessions: int = ADAPTER_SESSIONS,
    export_cache: Path | None = None,
    **options: Unpack[EngineOptions],
) -> Encoder:
    """An encoder of a checkpoint: `minilm-m3` or `multi-m3`, which come with Tercet, a folder, or a hub id;
    or of what `EncoderInfo.checkpoint` says of one.

    engine: `onnx` for an exported graph, run by kernels of our own where they take it, else by onnxruntime;
    `native` or `onnxruntime` for one of the two; `torch` for the weights.
    heads: such a checkpoint, whose sparse and ColBERT heads take the place of its own; mcls_every: a CLS
    stands at every position that this divides, and the mean of their states is the dense vector, whatever the
    checkpoint was trained with (MCLS, arXiv 2402.03216, section 3.4); precision: float32, int8 (onnx),
    float16 or bfloat16 (torch on CUDA), by default int8 where it was exported and the device is a CPU,
    bfloat16 for torch on a GPU that computes in it, else float32; adapter_sessions: exported graphs of
    adapters kept open at a time (onnx); export_cache: folder of the graphs of checkpoints that came without,
    which are exported there once; without it they are refused (onnx). A folder of static embeddings needs no
    engine, and takes none.
    Raises CheckpointError, or UnsupportedError where the engine is not installed.
    """
    recorded = Variant.of(checkpoint)
    checkpoint, heads = recorded.checkpoint, heads or recorded.heads
    every = recorded.mcls_every if mcls_every is None else mcls_every
    folder = resolve_checkpoint(checkpoint, revision)
    name, origin = checkpoint_name(checkpoint), checkpoint_origin(checkpoint, folder)
    if is_static(folder):
        if heads is not None:
            raise UnsupportedError(f"{name} has static embeddings, with which no heads go; leave heads out")
        if every is not None:
            raise UnsupportedError(
                f"{name} has static embeddings, which no CLS goes with; leave mcls_every out"
            )
        return _ready(StaticEncoder(folder, name, origin=origin, precision=precision))
    _warn(folder, name)
    lender = None if heads is None else resolve_checkpoint(heads)
    if every is not None:
        _require_cls(folder, name, every)
    if heads is not None and lender is not None:
        heads = checkpoint_origin(heads, lender) or checkpoint_name(heads)
    if (heads, every) != (None, None):
        origin = Variant(origin or name, heads, every).name
    suited = engine == "onnx" and precision in (None, "float32")
    if suited and export_cache is not None and not has_export(folder):
        exported = cached_export(folder, name, origin, export_cache, lender, every)
        if exported is None:
            engine = "torch"
        else:
            folder, lender = exported, None  # whose heads its graph has
    # Each engine is imported only when chosen: serving on a CPU has no torch.
    if engine in ("onnx", "native", "onnxruntime"):
        from tercet.models.onnx_encoder import OnnxEncoder

        if lender is not None:
            _require_exported_with_heads(folder, lender)
        if every is not None:
            _require_exported_with_mcls(folder, every)
        return _ready(
            OnnxEncoder(
                folder,
                name,
                engine=engine,
                origin=origin,
                precision=precision,
                adapter_sessions=adapter_sessions,
                **options,
            )
        )
    if engine == "torch":
        try:
            from tercet.models.torch_encoder import TorchEncoder
        except ImportError as error:
            raise UnsupportedError(
                f"the torch engine needs torch and transformers ({error}): "
                "pip install -c constraints.txt -e '.[torch]'"
            ) from error
        return _ready(
            TorchEncoder(
                folder, name, origin=origin, heads=lender, mcls_every=every, precision=precision, **options
            )
        )
    raise UnsupportedError(f"engine {engine!r} is not known; choose onnx, native, onnxruntime or torch")


def load_tokenizer(folder: Path, mcls_every: int | None = None) -> Tokenizer:
    """The tokenizer of a checkpoint folder, whatever encodes its tokens; mcls_every: as of `load_encoder`.
    Raises CheckpointError.
    """
    if is_static(folder):
        return read_static(folder).tokenizer
    return Tokenizer.load(folder, read_settings(folder, mcls_every))


def _warn(folder: Path, name: str) -> None:
    """The log tells what of a checkpoint is not used as its own library would."""
    lost = None if read_settings(folder).pooling == "none" else similarity_lost(folder)
    if lost is not None:
        log.warning(
            "checkpoint %s compares its dense vectors by %s; here they have length 1 and are compared by "
            "cosine",
            name,
            lost,
        )
    tasks = tasks_in(folder)
    if tasks and read_settings(folder).tasks is None:
        log.warning("checkpoint %s: none of its adapters %s is asked for: it is the base alone", name, tasks)


def _require_cls(folder: Path, name: str, every: int) -> None:
    """The log tells where the states of a CLS were not trained to be dense vectors. Raises UnsupportedError
    where there are no dense vectors, and CheckpointError for a number out of range.
    """
    pooling = read_settings(folder, every).pooling
    if pooling == "none":
        raise UnsupportedError(f"{name} has no dense side, so that no CLS counts; leave mcls_every out")
    if pooling != "cls":
        log.warning(
            "checkpoint %s has pooling %r: nothing trained its CLS to stand for a text, and the mean of "
            "several may rank badly",
            name,
            pooling,
        )


def _require_exported_with_mcls(folder: Path, every: int) -> None:
    """Raises CheckpointError unless the graph of a folder has this many tokens to a CLS, which no flag can
    give it any more.
    """
    if not has_export(folder) or read_export(folder).mcls_every != every:
        raise CheckpointError(
            f"{folder} has no graph exported with a CLS every {every} tokens: make one with `tercet export "
            f"CHECKPOINT --mcls-every {every} --output FOLDER` and serve that folder, or use the torch engine"
        )


def _require_exported_with_heads(folder: Path, lender: Path) -> None:
    """Raises CheckpointError unless the graph of a folder has the heads of another, which no flag can give it
    any more.
    """
    try:
        from tercet.models.heads import with_heads_of  # those of a .pt file take torch
    except ImportError as error:
        raise UnsupportedError(
            f"to read the heads of {lender} takes torch ({error}): give --heads to `tercet export` alone, "
            "whose folder then has them"
        ) from error
    width = hidden_size(folder)
    wanted = with_heads_of(read_heads(folder, width), read_settings(folder), folder, width, lender)
    if not has_export(folder) or read_export(folder).heads != heads_digest(wanted.arrays()):
        raise CheckpointError(
            f"{folder} has no graph exported with the heads of {lender}: make one with `tercet export "
            "CHECKPOINT --heads HEADS --output FOLDER` and serve that folder, or use the torch engine"
        )


def _ready(encoder: OnnxEncoder | TorchEncoder | StaticEncoder) -> Encoder:
    """The encoder with its routers, which encoded a short text; the log tells which sides it lacks, as a lost
    file may be the reason. Raises CheckpointError where what its files hold does not go together.
    """
    lacking = [side for side in OUTPUTS if side not in encoder.info.sides]
    if lacking:
        named = " and no ".join(lacking)
        log.warning("checkpoint %s has no %s side: it serves what it has", encoder.info.name, named)
    try:
        encode(encoder, [TRIAL_TEXT])
    except (EncoderFailedError, ArithmeticError, *BROKEN) as error:
        raise CheckpointError(
            f"checkpoint {encoder.info.name} does not encode a short text: {reason(error)}; take "
            "another copy of it"
        ) from error
    return with_routers(encoder)
