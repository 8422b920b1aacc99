"""The precision of products while training; everything else is float32."""

from __future__ import annotations

import torch

from tercet.models.encoder_model import PRECISIONS
from tercet.training.settings.optimization import Precision


def autocast(device: str, precision: Precision) -> torch.autocast:
    """Products in the precision of the run; parameters stay in float32."""
    return torch.autocast(device, PRECISIONS[precision], enabled=precision != "float32")
