"""A checkpoint's own adapters by task, in torch: LoRA of linear layers and of embeddings, as PEFT writes it.

y + s·B·A·x for a linear layer, and for an embedding y + s·B·A[:, x], with s = α/r, https://arxiv.org/abs/2106.09685.
What a file asks for beyond that is refused with its name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.batching import Adapters, rows_by_adapter
from tercet.models.errors import CheckpointError
from tercet.models.formats.peft_config import CONFIG, WEIGHTS, read_peft_config
from tercet.models.tasks import KINDS, Tasks
from tercet.models.weights.tensor_files import read_weights

PREFIX = "base_model.model."
# The ends of names, of A and of B.
LINEAR = (".lora_A.weight", ".lora_B.weight")
EMBEDDING = (".lora_embedding_A", ".lora_embedding_B")


@dataclass(frozen=True, slots=True, eq=False)
class LayerChange:
    """What one task adds to one layer. a: float[r, in]; b: float[out, r], scaled."""

    a: Tensor
    b: Tensor
    of_embedding: bool

    def added(self, x: Tensor) -> Tensor:
        """For inputs float[…, in], or ids int64[…] of an embedding: float[…, out]."""
        rank = functional.embedding(x, self.a.T) if self.of_embedding else functional.linear(x, self.a)
        return functional.linear(rank, self.b)

    def fold(self, layer: nn.Module) -> None:
        """Makes it part of the layer's own weights."""
        weight: Any = layer.weight
        product = self.b @ self.a
        weight.data += product.T if self.of_embedding else product


Changes = Mapping[str, LayerChange]  # by the path of the layer


def fold_task(folder: Path, task: str, body: nn.Module) -> None:
    """Makes an adapter part of a body's weights. Raises CheckpointError as `read_changes`."""
    for path, change in read_changes(folder / task, body).items():
        change.fold(body.get_submodule(path))


class TaskAdapters:
    """The adapters of queries and documents on a body. Safe to use from several threads."""

    def __init__(self, folder: Path, tasks: Tasks, body: nn.Module) -> None:
        """Raises CheckpointError as `read_changes`."""
        self._changes: dict[str, Changes] = {
            kind: read_changes(folder / getattr(tasks, kind), body) for kind in KINDS
        }
        self._acting = threading.local()
        for path in sorted({path for changes in self._changes.values() for path in changes}):
            body.get_submodule(path).register_forward_hook(self._hook(path))

    @contextmanager
    def acting(self, kinds: Adapters, device: torch.device) -> Iterator[None]:
        """Within the context, each row of this thread's pass goes through the adapter of its kind."""
        rows = rows_by_adapter(kinds)
        self._acting.shares = [
            (None if len(rows) == 1 else torch.from_numpy(own).to(device), self._changes[str(kind)])
            for kind, own in rows.items()
        ]
        try:
            yield
        finally:
            self._acting.shares = []

    def _hook(self, path: str) -> Any:
        def changed(_: nn.Module, given: Sequence[Tensor], output: Tensor) -> Tensor:
            shares: list[tuple[Tensor | None, Changes]] = getattr(self._acting, "shares", [])
            for rows, changes in shares:
                if path not in changes:
                    continue
                if rows is None:
                    return output + changes[path].added(given[0])
                output[rows] += changes[path].added(given[0][rows])
            return output

        return changed


def read_changes(folder: Path, body: nn.Module) -> dict[str, LayerChange]:
    """An adapter in PEFT's files, on the body's device and in its precision.

    Raises CheckpointError that names what the files hold beyond plain LoRA, or what the body does not have.
    """
    config, path = read_peft_config(folder, ("LORA",)), folder / WEIGHTS
    if not path.is_file():
        raise CheckpointError(f"{path} is missing, though {CONFIG} is there")
    arrays = read_weights(path)
    changes: dict[str, LayerChange] = {}
    for ends in (LINEAR, EMBEDDING):
        for name in [name for name in arrays if name.endswith(ends[0])]:
            layer = name.removeprefix(PREFIX).removesuffix(ends[0])
            a, b = arrays.pop(name), arrays.pop(name.removesuffix(ends[0]) + ends[1], None)
            changes[layer] = _change(path, layer, a, b, config.scale, body, of_embedding=ends is EMBEDDING)
    if arrays:
        raise CheckpointError(
            f"{path}: {min(arrays)} is not read here, but LoRA of linear layers and embeddings"
        )
    return changes


def _change(
    path: Path,
    layer: str,
    a: np.ndarray[Any, np.dtype[np.float32]],
    b: np.ndarray[Any, np.dtype[np.float32]] | None,
    scale: float,
    body: nn.Module,
    *,
    of_embedding: bool,
) -> LayerChange:
    """Raises CheckpointError where the body has no such layer of these sizes."""
    try:
        module = body.get_submodule(layer)
    except AttributeError as error:
        raise CheckpointError(f"{path}: {type(body).__name__} has no layer {layer}") from error
    if not isinstance(module, nn.Embedding if of_embedding else nn.Linear):
        raise CheckpointError(f"{path}: {layer} is a {type(module).__name__}, to which its LoRA does not go")
    weight: Tensor = module.weight.T if of_embedding else module.weight
    if b is None or a.ndim != 2 or b.ndim != 2 or (len(b), a.shape[1], b.shape[1]) != (*weight.shape, len(a)):
        shapes = [list(a.shape), None if b is None else list(b.shape)]
        raise CheckpointError(f"{path}: {layer} has LoRA of shapes {shapes} for weights {list(weight.shape)}")
    return LayerChange(
        torch.from_numpy(a).to(weight), torch.from_numpy(b * np.float32(scale)).to(weight), of_embedding
    )
