"""Opens a checkpoint with the engine asked for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from models.adapters.routing import with_routers
from models.adapters.settings import ADAPTER_SESSIONS
from models.checkpoint import checkpoint_name, checkpoint_origin, resolve_checkpoint
from models.encoder import Encoder, Engine
from models.errors import UnsupportedError
from models.representations import OUTPUTS

if TYPE_CHECKING:
    from models.onnx_encoder import OnnxEncoder
    from models.torch_encoder import TorchEncoder

log = logging.getLogger("tercet")


def load_encoder(
    checkpoint: str,
    engine: Engine = "onnx",
    *,
    revision: str | None = None,
    device: str = "auto",
    threads: int | None = None,
    batch_tokens: int | None = None,
    limit_tokens: int | None = None,
    precision: str | None = None,
    adapters: Path | None = None,
    adapter_sessions: int = ADAPTER_SESSIONS,
) -> Encoder:
    """An encoder of a checkpoint: `minilm-m3` or `multi-m3`, which come with Tercet, a folder, or a hub id.

    engine: `onnx` for an exported graph, run by kernels of our own where they take it, else by onnxruntime;
    `native` or `onnxruntime` for one of the two; `torch` for the weights.
    device: auto, cpu or cuda; threads: CPU threads of one pass, by default `usable_cores`;
    batch_tokens: padded tokens of one pass, by default what suits engine and device; limit_tokens: no more
    than these, where the default is more; precision: float32, int8 (onnx), float16 or bfloat16
    (torch on CUDA), by default int8 where it was exported and the device is a CPU, else float32;
    adapters: folder of the adapters and routers that may be asked for; adapter_sessions: exported graphs of
    adapters kept open at a time (onnx).
    Raises CheckpointError, or UnsupportedError where the engine is not installed.
    """
    folder = resolve_checkpoint(checkpoint, revision)
    name, origin = checkpoint_name(checkpoint), checkpoint_origin(checkpoint, folder)
    # Each engine is imported only when chosen: serving on a CPU has no torch.
    if engine in ("onnx", "native", "onnxruntime"):
        from models.onnx_encoder import OnnxEncoder

        return _told(
            OnnxEncoder(
                folder,
                name,
                engine=engine,
                origin=origin,
                device=device,
                threads=threads,
                batch_tokens=batch_tokens,
                limit_tokens=limit_tokens,
                precision=precision,
                adapters=adapters,
                adapter_sessions=adapter_sessions,
            )
        )
    if engine == "torch":
        try:
            from models.torch_encoder import TorchEncoder
        except ImportError as error:
            raise UnsupportedError(
                f"the torch engine needs torch and transformers ({error}): "
                "pip install -c constraints.txt -e '.[torch]'"
            ) from error
        return _told(
            TorchEncoder(
                folder,
                name,
                origin=origin,
                device=device,
                threads=threads,
                batch_tokens=batch_tokens,
                limit_tokens=limit_tokens,
                precision=precision,
                adapters=adapters,
            )
        )
    raise UnsupportedError(f"engine {engine!r} is not known; choose onnx, native, onnxruntime or torch")


def _told(encoder: OnnxEncoder | TorchEncoder) -> Encoder:
    """The encoder with its routers; the log tells which sides it lacks, as a lost file may be the reason."""
    lacking = [side for side in OUTPUTS if side not in encoder.info.sides]
    if lacking:
        named = " and no ".join(lacking)
        log.warning("checkpoint %s has no %s side: it serves what it has", encoder.info.name, named)
    return with_routers(encoder)
