"""Dense layers in torch: read from the folders of a checkpoint's modules, and computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tercet.models.errors import CheckpointError
from tercet.models.fingerprint import WEIGHT_FILES
from tercet.models.formats.sentence_transformers import DenseModules, object_in
from tercet.models.formats.stanford_colbert import PROJECTION
from tercet.models.representations import Float32
from tercet.models.weights.dense_layers import Activation, DenseLayer, Layers, require_chain
from tercet.models.weights.head_weights import LinearHead
from tercet.models.weights.tensor_files import read_body, read_weights

ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {
    "identity": lambda states: states,
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
}


class Projection(nn.Module):
    """Dense layers, one after the other. Their weights are buffers: training leaves them as they are."""

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self.linear = nn.ModuleList([_linear(layer.weight, layer.bias) for layer in layers])
        self.residual = nn.ModuleList(
            [nn.Identity() if layer.residual is None else _linear(layer.residual) for layer in layers]
        )
        self.layers = layers

    def forward(self, states: Tensor) -> Tensor:
        """float[…, d] to float[…, rows of the last layer]."""
        for layer, linear, residual in zip(self.layers, self.linear, self.residual, strict=True):
            projected = ACTIVATIONS[layer.activation](linear(states))
            states = projected + residual(states) if layer.skip or layer.residual is not None else projected
        return states


def _linear(weight: Float32, bias: Float32 | None = None) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0])
    values = {"weight": weight, "bias": _no_bias(weight) if bias is None else bias}
    for name, value in values.items():
        delattr(linear, name)
        linear.register_buffer(name, torch.from_numpy(value.copy()))
    return linear


def _no_bias(weight: Float32) -> Float32:
    """A bias that changes nothing: an exported graph tells the products of heads, which stay in float32, by
    the names of their biases, and would give one of plain zeros the name of an equal one of the body.
    """
    return np.full(len(weight), -0.0, np.float32)


def read_layers(modules: DenseModules, width: int) -> Layers:
    """The layers of a checkpoint's modules `Dense`, in order. width: of the first one's input.

    Raises CheckpointError that names the file which is missing, damaged or not understood.
    """
    layers = tuple(_read_layer(folder, modules) for folder in modules.folders)
    require_chain(layers, [str(folder) for folder in modules.folders], width)
    return layers


def linear_of(layer: DenseLayer) -> LinearHead:
    """A layer that is linear, as the heads of BGE-M3 are held."""
    return LinearHead(layer.weight, _no_bias(layer.weight) if layer.bias is None else layer.bias)


def stanford_projection(folder: Path, width: int) -> LinearHead:
    """The projection that lies among the body's weights. Raises CheckpointError."""
    arrays = read_body(folder, [PROJECTION])
    if PROJECTION not in arrays:
        raise CheckpointError(f"{folder}: the weight files lack {PROJECTION}, the projection of this ColBERT")
    layer = DenseLayer(arrays[PROJECTION])
    require_chain([layer], [f"{folder}: {PROJECTION}"], width)
    return linear_of(layer)


def _read_layer(folder: Path, modules: DenseModules) -> DenseLayer:
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(f"{path} is missing, though modules.json names its folder")
    config = object_in(path)
    for name in ("module_input_name", "module_output_name"):
        if config.get(name) not in (None, modules.feature):
            raise CheckpointError(
                f"{path}: {name} is {config[name]!r}; only {modules.feature!r} is read here"
            )
    source = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
    if source is None:
        raise CheckpointError(f"{folder / WEIGHT_FILES[0]} is missing, and so is {WEIGHT_FILES[1]}")
    arrays = read_weights(source)
    adds = bool(config.get("use_residual"))
    projects = adds and config.get("in_features") != config.get("out_features")
    names = ["linear.weight"]
    names += ["linear.bias"] if config.get("bias", True) else []
    names += ["residual.weight"] if projects else []
    if sorted(arrays) != sorted(names):
        raise CheckpointError(f"{source} holds {sorted(arrays)}; {path} asks for {sorted(names)}")
    weight = arrays["linear.weight"]
    sizes = [config.get("out_features"), config.get("in_features")]
    if list(weight.shape) != sizes:
        raise CheckpointError(f"{source}: linear.weight has shape {list(weight.shape)}; {path} says {sizes}")
    return DenseLayer(
        weight,
        arrays.get("linear.bias"),
        _activation(config, modules.usual_activation, path),
        arrays.get("residual.weight"),
        adds and not projects,
    )


def _activation(config: Mapping[str, Any], usual: str, path: Path) -> Activation:
    """An activation by its class's full name, such as torch.nn.modules.activation.Tanh."""
    named = config.get("activation_function", usual)
    named = "torch.nn.Identity" if named is None else str(named)
    known: dict[str, Activation] = {name: name for name in get_args(Activation)}
    activation = known.get(named.rpartition(".")[2].lower())
    if activation is None or not named.startswith("torch.nn."):
        raise CheckpointError(
            f"{path}: activation_function {named!r} is not read here, but of torch.nn {list(known)}"
        )
    return activation
