"""Layers between a text's states and its vectors, as the modules `Dense` of sentence-transformers and PyLate
hold them: y = activation(W·x + b), and perhaps x or R·x added.

https://sbert.net/docs/package_reference/sentence_transformer/models.html#sentence_transformers.models.Dense
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tercet.models.errors import CheckpointError
from tercet.models.representations import Float32

Activation = Literal["identity", "tanh", "relu", "gelu", "silu", "sigmoid"]
"""Activations of torch that take no arguments, in their plain form."""
SKIP = "skip"


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """weight: float32[rows, d]; bias: float32[rows] or None; residual: float32[rows, d], which is applied to
    the input and added, or None; skip: whether the input itself is added.
    """

    weight: Float32
    bias: Float32 | None = None
    activation: Activation = "identity"
    residual: Float32 | None = None
    skip: bool = False

    @property
    def is_linear(self) -> bool:
        """Whether it is weight and bias alone."""
        return self.activation == "identity" and self.residual is None and not self.skip


Layers = tuple[DenseLayer, ...]


def layer_arrays(side: str, layers: Layers) -> dict[str, Float32]:
    """Arrays under the names of heads.safetensors: `SIDE.0.weight` and so on.

    What is no number is an array without values: the name of an activation, and `skip`.
    """
    arrays: dict[str, Float32] = {}
    for index, layer in enumerate(layers):
        named = {"weight": layer.weight, "bias": layer.bias, "residual": layer.residual}
        flags = [layer.activation, *([SKIP] if layer.skip else [])]
        named |= {flag: np.zeros(0, np.float32) for flag in flags if flag != "identity"}
        arrays |= {f"{side}.{index}.{name}": array for name, array in named.items() if array is not None}
    return arrays


def layers_from_arrays(side: str, arrays: Mapping[str, Float32], source: str, width: int) -> Layers:
    """The layers of a side from their named arrays. width: of the first layer's input.

    Raises CheckpointError that names `source`.
    """
    layers: list[DenseLayer] = []
    while tensors := {
        name.removeprefix(prefix): array
        for prefix in (f"{side}.{len(layers)}.",)
        for name, array in arrays.items()
        if name.startswith(prefix)
    }:
        flags = [name for name in get_args(Activation) if name in tensors]
        if "weight" not in tensors:
            raise CheckpointError(f"{source} lacks {side}.{len(layers)}.weight")
        layers.append(
            DenseLayer(
                *(tensors["weight"], tensors.get("bias"), flags[0] if flags else "identity"),
                tensors.get("residual"),
                SKIP in tensors,
            )
        )
    require_chain(layers, [f"{source}: {side}.{index}" for index in range(len(layers))], width)
    return tuple(layers)


def require_chain(layers: Sequence[DenseLayer], sources: Sequence[str], width: int) -> None:
    """Raises CheckpointError, with its source, for a layer that does not take what the one before gives."""
    for layer, source in zip(layers, sources, strict=True):
        rows = len(layer.weight)
        shapes = {"weight": (rows, width), "bias": (rows,), "residual": (rows, width)}
        for name, shape in shapes.items():
            array = getattr(layer, name)
            if array is not None and array.shape != shape:
                raise CheckpointError(
                    f"{source}: {name} has shape {list(array.shape)}; what comes before needs {list(shape)}"
                )
            if array is not None:
                require_finite(array, f"{source}: {name}")
        if layer.skip and rows != width:
            raise CheckpointError(
                f"{source}: adds its input of {width} values to {rows}; it needs a residual"
            )
        width = rows


def require_finite(array: npt.NDArray[Any], source: str) -> None:
    """Raises CheckpointError, with its source, for weights of which some are no numbers or infinite."""
    if not np.isfinite(array).all():
        raise CheckpointError(f"{source} has values that are not finite numbers; take another copy of it")
