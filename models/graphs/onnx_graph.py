"""One exported graph opened by onnxruntime: all outputs in one run, on CPU or CUDA."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tercet.models.batching import PaddedOutputs
from tercet.models.errors import CheckpointError, EncoderFailedError, EncoderMemoryError, UnsupportedError
from tercet.models.representations import OUTPUTS, Float32, Int64, Output

# From 1.31 on it would tell its maker of machines and models, unless this is set before it is loaded.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
try:
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException
except ImportError as error:
    raise UnsupportedError(
        f"the onnx engine needs onnxruntime ({error}): "
        "pip install -c constraints.txt -e '.[cpu]', or '.[gpu]' with CUDA"
    ) from error


# What its messages say where memory was not to be had, for which it has no class: of its own arena, of the
# system, of CUDA and of cuBLAS.
OUT_OF_MEMORY = (
    "Failed to allocate memory for requested buffer",
    "std::bad_alloc",
    "CUDA failure 2: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


# Padded tokens of a batch that one thread encodes as fast as several, which wait for each other, and longer
# where another process uses a core. It takes a session of its own and so a second copy of the weights; where
# these are large, so is each operator, and threads gain from sharing it.
LONE_TOKENS = 64
LONE_GRAPH_BYTES = 64 << 20


AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where graphs run. kind: cpu or cuda; gpu: its number; threads: of one run on a CPU."""

    kind: str
    gpu: int
    threads: int


class OnnxGraph:
    """An open graph. Safe to run from several threads."""

    def __init__(self, path: Path, placement: Placement) -> None:
        """Raises CheckpointError where it cannot be opened, UnsupportedError for a GPU it cannot use."""
        self._session = open_session(path, placement)
        self._lone_session = self._session
        if placement.kind == "cpu" and placement.threads > 1 and _bytes_of(path) <= LONE_GRAPH_BYTES:
            self._lone_session = open_session(path, replace(placement, threads=1))

    def forward(self, ids: Int64, mask: Int64, outputs: Sequence[Output]) -> PaddedOutputs:
        """Token ids and mask, int64[B, L] each, to the outputs asked for.

        Raises EncoderMemoryError where memory does not suffice.
        """
        wanted = [name for name in OUTPUTS if name in outputs]
        arrays = self.run(wanted, {"input_ids": ids, "attention_mask": mask})
        return PaddedOutputs(arrays.get("dense"), arrays.get("sparse"), arrays.get("colbert"))

    def run(self, outputs: Sequence[str], inputs: Mapping[str, AnyArray]) -> dict[str, Float32]:
        """The outputs asked for, by their names. inputs: by theirs, the mask int64[B, L] among them.

        Raises EncoderMemoryError where memory does not suffice, and EncoderFailedError where the graph does
        not take the texts.
        """
        tokens = inputs["attention_mask"].size
        session = self._lone_session if tokens <= LONE_TOKENS else self._session
        try:
            arrays = session.run(list(outputs), dict(inputs))
        except (Fail, InvalidArgument, RuntimeException, ValueError) as error:
            if any(words in str(error) for words in OUT_OF_MEMORY):
                raise EncoderMemoryError(str(error)) from None
            raise EncoderFailedError(f"onnxruntime failed on texts of {tokens} tokens: {error}") from error
        return dict(zip(outputs, arrays, strict=True))


def has_cuda() -> bool:
    """Whether this onnxruntime was built for GPUs."""
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def _bytes_of(path: Path) -> int:
    """Size of a graph with its external data."""
    parts = (path, path.with_name(path.name + ".data"))
    return sum(part.stat().st_size for part in parts if part.exists())


def open_session(path: Path, placement: Placement) -> onnxruntime.InferenceSession:
    """A graph as onnxruntime runs it. Raises as `OnnxGraph`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = placement.threads
    on_cuda = placement.kind == "cuda"
    providers: list[str | tuple[str, dict[str, int]]] = ["CPUExecutionProvider"]
    if on_cuda:
        providers.insert(0, ("CUDAExecutionProvider", {"device_id": placement.gpu}))
    # Threads that spin while they wait take the processor from searches and builds beside them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # The fused operator is slower on a CPU than the two it replaces.
    slower = [] if on_cuda else ["SkipLayerNormFusion"]
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=providers, disabled_optimizers=slower
        )
    except Exception as error:
        raise CheckpointError(f"{path} cannot be opened by onnxruntime: {error}") from error
    if on_cuda and "CUDAExecutionProvider" not in session.get_providers():
        # onnxruntime would go on with the CPU and only warn.
        raise UnsupportedError(
            f"onnxruntime cannot use GPU {placement.gpu}; see its warning above, or choose cpu"
        )
    return session
