"""The engine through onnxruntime: three outputs in one session run, on CPU or CUDA."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from models.batching import PaddedOutputs, encode_in_batches
from models.checkpoint import hidden_size, read_settings
from models.device import choose_device
from models.encoder import EncoderInfo
from models.errors import CheckpointError, UnsupportedError
from models.fingerprint import fingerprint, heads_digest
from models.graphs import check_settings, choose_graph, read_export, verify_graph
from models.head_weights import read_heads
from models.representations import OUTPUTS, Int64, Output, Representations, TokenBatch
from models.tokenizer import Tokenizer

try:
    import onnxruntime
except ImportError as error:
    raise UnsupportedError(
        "the onnx engine needs onnxruntime: pip install -c constraints.txt -e '.[cpu]', or '.[gpu]' with CUDA"
    ) from error

# Small enough for a batch's activations to stay in the caches.
CPU_BATCH_TOKENS = 1024
CUDA_BATCH_TOKENS = 16384


class OnnxEncoder:
    """An `Encoder` on onnxruntime. precision: int8 or float32, by default what suits the device."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        device: str = "auto",
        threads: int | None = None,
        batch_tokens: int | None = None,
        precision: str | None = None,
    ) -> None:
        kind, gpu = choose_device(
            device,
            cuda="CUDAExecutionProvider" in onnxruntime.get_available_providers(),
            remedy="this onnxruntime has no CUDA provider; in an environment of its own: "
            "pip install -c constraints.txt -e '.[gpu]'",
        )
        settings = read_settings(folder)
        export = read_export(folder)
        precision, graph = choose_graph(export, precision, kind)
        heads = read_heads(folder, hidden_size(folder))
        heads.require_dimension(settings.colbert_dimension, folder)
        check_settings(folder, export, settings, heads_digest(heads.arrays()))
        self.tokenizer = Tokenizer.load(folder, settings)
        threads = threads or len(os.sched_getaffinity(0))
        self._session = _open_session(verify_graph(folder, graph), kind, gpu, threads)
        # While one batch is in a part that does not split over threads, another uses them.
        self._workers = 2 if kind == "cpu" and threads > 1 else 1
        self._batch_tokens = batch_tokens or (CUDA_BATCH_TOKENS if kind == "cuda" else CPU_BATCH_TOKENS)
        quantized = graph.files[graph.file] if precision == "int8" else None
        self.info = EncoderInfo(
            name=name,
            fingerprint=fingerprint(export.weights, export.heads, self.tokenizer.digest, settings, quantized),
            engine="onnx",
            precision=precision,
            dense_dimension=heads.sparse_weight.shape[1],
            colbert_dimension=heads.colbert_dimension,
            vocabulary_size=self.tokenizer.vocabulary_size,
            max_length=settings.max_length,
            pooling=settings.pooling,
        )

    def encode_tokens(self, batch: TokenBatch, outputs: Sequence[Output] = OUTPUTS) -> Representations:
        """Representations of each text of the batch, in the batch's order."""
        return encode_in_batches(
            batch, outputs, self._batch_tokens, self.tokenizer, self.info, self._forward, self._workers
        )

    def _forward(self, ids: Int64, mask: Int64, outputs: Sequence[Output]) -> PaddedOutputs:
        asked = [name for name in OUTPUTS if name in outputs]
        arrays = self._session.run(asked, {"input_ids": ids, "attention_mask": mask})
        found = dict(zip(asked, arrays, strict=True))
        return PaddedOutputs(found.get("dense"), found.get("sparse"), found.get("colbert"))


def _open_session(path: Path, kind: str, gpu: int, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    providers: list[str | tuple[str, dict[str, int]]] = ["CPUExecutionProvider"]
    if kind == "cuda":
        providers.insert(0, ("CUDAExecutionProvider", {"device_id": gpu}))
    # Threads that spin while they wait take the processor from searches and builds beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The fused operator is slower on a CPU than the two it replaces.
    slower = ["SkipLayerNormFusion"] if kind == "cpu" else []
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=providers, disabled_optimizers=slower
        )
    except Exception as error:
        raise CheckpointError(f"{path} cannot be opened by onnxruntime: {error}") from error
    if kind == "cuda" and "CUDAExecutionProvider" not in session.get_providers():
        # onnxruntime would go on with the CPU and only warn.
        raise UnsupportedError(f"onnxruntime cannot use GPU {gpu}; see its warning above, or choose cpu")
    return session
