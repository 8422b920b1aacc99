"""Passes recorded once for each shape: a replay costs the host one launch instead of one for each kernel."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tercet.models.packed.transfers import new_stream

Run = Callable[[Sequence[Tensor]], Mapping[str, Tensor]]
"""A pass over inputs of fixed shapes."""
Replay = Callable[[], None]
Record = Callable[[Run, Sequence[Tensor]], tuple[Mapping[str, Tensor], Replay]]
"""From a pass and the inputs that it always reads to the outputs that it always writes, and what runs it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Recording:
    inputs: Sequence[Tensor]
    outputs: Mapping[str, Tensor]
    replay: Replay


class Recordings:
    """Keeps the recordings used last. Safe to use from several threads: one replays at a time."""

    def __init__(self, record: Record, most: int) -> None:
        """most: recordings kept."""
        self._record = record
        self._most = most
        self._kept: OrderedDict[Hashable, _Recording] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, key: Hashable, run: Run, inputs: Sequence[Tensor]) -> dict[str, Tensor]:
        """What `run` gives for these inputs; it is recorded at the first use of its key."""
        with self._lock:
            if key not in self._kept:
                own = [tensor.clone() for tensor in inputs]
                outputs, replay = self._record(run, own)
                self._kept[key] = _Recording(own, outputs, replay)
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            recording = self._kept[key]
            for mine, given in zip(recording.inputs, inputs, strict=True):
                mine.copy_(given, non_blocking=True)
            recording.replay()
            # The next replay writes over what a recording gives.
            return {name: tensor.clone() for name, tensor in recording.outputs.items()}

    def clear(self) -> None:
        """Frees all of them."""
        with self._lock:
            self._kept.clear()


class CudaRecorder:
    """Records CUDA graphs, which share their memory between replays."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Run, inputs: Sequence[Tensor]) -> tuple[Mapping[str, Tensor], Replay]:
        """Records a pass, as the protocol `Record` says."""
        beside = new_stream(self._device)
        beside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(beside):
            run(inputs)  # libraries make their workspaces now, and kernels are compiled
        torch.cuda.current_stream(self._device).wait_stream(beside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=beside, capture_error_mode="thread_local"):
            outputs = run(inputs)
        return outputs, graph.replay
