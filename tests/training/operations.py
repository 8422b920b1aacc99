"""Counts what is computed, so that bounds can be tested without a clock."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """Counts operations, and numbers in the largest tensor that one gives."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.count += 1
        for each in found if isinstance(found, tuple | list) else (found,):
            if isinstance(each, Tensor):
                self.largest = max(self.largest, each.numel())
        return found
