"""Between host and device: pinned memory, and a second stream that brings results back beside a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Arriving:
    """Tensors on their way to the host. `wait` before they are read."""

    tensors: Mapping[str, Tensor]
    arrived: torch.cuda.Event | None

    def wait(self) -> Mapping[str, Tensor]:
        """The tensors, once they are there: the one wait of a pass."""
        if self.arrived is not None:
            self.arrived.synchronize()
        return self.tensors


def new_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream beside the current one."""
    stream: torch.cuda.Stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # untyped in torch
    return stream


class Transfers:
    """Copies for one device. Safe to use from several threads.

    On a GPU nothing here waits: torch keeps pinned blocks that were used, and gives one out again only once
    its copy has ended. On a CPU nothing is copied.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._on_gpu = device.type == "cuda"
        self._back = new_stream(device) if self._on_gpu else None

    def to_device(self, array: npt.NDArray[np.generic], size: int, fill: int) -> Tensor:
        """The array on the device, lengthened to `size` with `fill`."""
        host = torch.empty(size, dtype=torch.from_numpy(array[:0]).dtype, pin_memory=self._on_gpu)
        staged = host.numpy()
        staged[: len(array)] = array
        staged[len(array) :] = fill
        return host.to(self.device, non_blocking=True)

    def to_host(self, tensors: Mapping[str, Tensor]) -> Arriving:
        """Starts to copy tensors that the current stream is about to have made."""
        if self._back is None:
            return Arriving(tensors, None)
        self._back.wait_stream(torch.cuda.current_stream(self.device))
        arriving = {}
        with torch.cuda.stream(self._back):
            for name, tensor in tensors.items():
                arriving[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
                arriving[name].copy_(tensor, non_blocking=True)
                tensor.record_stream(self._back)
            arrived = self._back.record_event()
        return Arriving(arriving, arrived)
