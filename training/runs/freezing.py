"""Which parameters of a body stay as they are while the rest is trained."""

from __future__ import annotations

import re

from torch import nn

from tercet.training.errors import ConfigError

BLOCK = re.compile(r"(?:^|\.)layers?\.(\d+)\.")
EMBEDDINGS = re.compile(r"(?:^|\.)embeddings\.")


def train_last_layers(model: nn.Module, count: int) -> None:
    """Freezes the embeddings and all but the last so many blocks of a body, or of a model with one.

    Raises ConfigError where the body has fewer.
    """
    blocks = {name: int(found[1]) for name, _ in model.named_parameters() if (found := BLOCK.search(name))}
    layers = 1 + max(blocks.values(), default=-1)
    if count > layers:
        raise ConfigError(
            f"optimization.last_layers: it is {count}, but must be at most {layers}, the body's layers"
        )
    for name, parameter in model.named_parameters():
        if EMBEDDINGS.search(name) or blocks.get(name, layers) < layers - count:
            parameter.requires_grad_(False)
