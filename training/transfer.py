"""Arrays of the host on their way to the device, without a wait."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def on_device(array: npt.NDArray[np.generic], device: torch.device | str) -> Tensor:
    """The array on the device. A GPU gets it from pinned memory, since any other copy waits for its work."""
    host = torch.from_numpy(array)
    if torch.device(device).type == "cpu":
        return host
    return host.pin_memory().to(device, non_blocking=True)
