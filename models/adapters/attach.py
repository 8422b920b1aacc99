"""Training an adapter: attached to a frozen body, its parameters listed, saved, and read back.

LoRA and (IA)³ are PEFT's; all other kinds are ours. So are modules that train together, whatever their kind,
since PEFT's act on all rows alike. Saved tensors have names of our own, so that no file depends on PEFT's
insides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.adapters.body import (
    ActiveAdapters,
    FixedAdapters,
    Part,
    Slot,
    body_shape,
    install,
    linear_at,
    path_of,
)
from tercet.models.adapters.files import write_adapter
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.parts import AdapterModule, load_parts, new_module
from tercet.models.adapters.record import Adapter, AdapterBase, ResolvedAdapter
from tercet.models.adapters.settings import (
    INDICES,
    INPUT_SCALED,
    FusionSettings,
    Ia3Settings,
    LoraSettings,
    SparseSettings,
    StackSettings,
    fused_name,
    require_adapter_name,
)
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.representations import Float32, Int32
from tercet.models.weights.head_weights import HeadWeights

try:
    from peft import IA3Config, LoraConfig, inject_adapter_in_model
except ImportError as error:
    raise UnsupportedError(
        f"training an adapter needs peft ({error}): pip install -c constraints.txt -e '.[train]'"
    ) from error


def attach(
    body: nn.Module, name: str, settings: AdapterSettings, *, below: Sequence[ResolvedAdapter] = ()
) -> nn.Module:
    """The body, changed in place: all its parameters frozen but those of a new adapter, in float32.

    It computes what it did before, except with a prefix or a prompt, which take attention from the start.
    Kind sparse changes the largest weights, until `choose_weights` chooses others. The bottlenecks of kind
    fusion add nothing, until `fill_fusion` fills them.
    below: trained adapters under the new one, frozen, the innermost first, as in MAD-X.
    Raises CheckpointError for a stack, a bad name or more weights than there are, UnsupportedError for a body
    unlike BERT.
    """
    if isinstance(settings, StackSettings):
        raise CheckpointError("a stack has nothing to train; attach its last adapter with the others below")
    require_adapter_name(name)
    body.requires_grad_(False)
    lower = [part for adapter in below for part in load_parts(adapter, body)]
    if isinstance(settings, LoraSettings | Ia3Settings):
        if lower:
            install(body, FixedAdapters(lower))
        inject_adapter_in_model(_peft_config(body, settings), body, _attribute(name))
    else:
        install(body, FixedAdapters([*lower, _new_part(body, name, settings)]))
    for parameter in trainable_parameters(body):
        parameter.data = parameter.data.float()
    return body


def attach_modules(
    body: nn.Module, names: Sequence[str], settings: AdapterSettings, active: ActiveAdapters
) -> list[Part]:
    """Several new adapters of one kind, in float32, of which `active` says which rows go through which.

    All other parameters of the body are frozen. Raises UnsupportedError for a body unlike BERT.
    """
    body.requires_grad_(False)
    parts = [_new_part(body, name, settings) for name in names]
    install(body, active)
    return parts


def trainable_parameters(body: nn.Module) -> list[nn.Parameter]:
    """The parameters of the attached adapter, for an optimizer; the heads, where trained too, are apart."""
    return [parameter for parameter in body.parameters() if parameter.requires_grad]


def weights_to_choose_from(body: nn.Module, settings: SparseSettings) -> dict[Slot, nn.Parameter]:
    """The weights float[out, in] of each layer that may change."""
    layers = range(body_shape(body).layers)
    slots: list[Slot] = [(layer, role) for layer in layers for role in settings.targets]
    return {slot: body.get_parameter(f"{path_of(body, slot)}.weight") for slot in slots}


def choose_weights(
    body: nn.Module, name: str, settings: SparseSettings, scores: Mapping[Slot, Tensor]
) -> None:
    """Makes an attached sparse adapter change the weights of the largest scores.

    scores: float[out, in] of each layer that may change.
    """
    indices = dict(named_tensors(body, name, settings))[INDICES]
    ranked = [matrix for matrix in body_shape(body).matrices() if (matrix.layer, matrix.role) in scores]
    flat = torch.cat([scores[matrix.layer, matrix.role].detach().flatten() for matrix in ranked])
    numbers = torch.cat([torch.arange(matrix.size) + matrix.start for matrix in ranked])
    largest = flat.topk(settings.count).indices.cpu()
    indices.copy_(numbers[largest].sort().values)


def fill_fusion(body: nn.Module, name: str, settings: FusionSettings, bottlenecks: Sequence[Adapter]) -> None:
    """Copies trained bottlenecks into an attached fusion, which does not train them."""
    tensors = dict(named_tensors(body, name, settings))
    for number, bottleneck in enumerate(bottlenecks):
        for key, array in bottleneck.arrays.items():
            tensors[fused_name(key, number)].copy_(torch.from_numpy(array))


def save_adapter(
    folder: Path,
    body: nn.Module,
    settings: AdapterSettings,
    base: AdapterBase,
    *,
    name: str | None = None,
    heads: HeadWeights | None = None,
    below: Sequence[ResolvedAdapter] = (),
    description: str = "",
    language: str | None = None,
    domain: str | None = None,
) -> Adapter:
    """Writes the adapter attached to a body as `folder`, whose last part is its name, and returns it.

    name: that in the body, where it is another; heads: those trained with it, or None for the base's; below:
    as for `attach`.
    """
    arrays: dict[str, Float32 | Int32] = {
        key: tensor.detach().to(torch.int32 if key == INDICES else torch.float32).cpu().numpy().copy()
        for key, tensor in named_tensors(body, name or folder.name, settings)
    }
    lower = tuple(adapter.digest for adapter in below)
    adapter = Adapter(settings, base, arrays, heads, lower, description, language, domain)
    write_adapter(folder, adapter)
    return adapter


def _peft_config(body: nn.Module, settings: LoraSettings | Ia3Settings) -> LoraConfig | IA3Config:
    layers = range(body_shape(body).layers)
    paths = [path_of(body, (layer, role)) for layer in layers for role in settings.targets]
    if isinstance(settings, LoraSettings):
        return LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,  # type: ignore[arg-type]  # PEFT takes floats, too
            lora_dropout=settings.dropout,
            target_modules=paths,
        )
    scaled_inputs = [
        path_of(body, (layer, INPUT_SCALED)) for layer in layers if INPUT_SCALED in settings.targets
    ]
    return IA3Config(target_modules=paths, feedforward_modules=scaled_inputs)


def _new_part(body: nn.Module, name: str, settings: AdapterSettings) -> Part:
    """An adapter of our own modules, which become parts of the body."""
    module = new_module(settings, body_shape(body)).to(next(body.parameters()).device)
    body.add_module(_attribute(name), module)
    if isinstance(settings, SparseSettings):
        sizes = {slot: weight.abs() for slot, weight in weights_to_choose_from(body, settings).items()}
        choose_weights(body, name, settings, sizes)
    return module.part()


def own_module(body: nn.Module, name: str) -> AdapterModule | None:
    """The module of an attached adapter; None where it is PEFT's."""
    module: AdapterModule | None = getattr(body, _attribute(name), None)
    return module


def named_tensors(body: nn.Module, name: str, settings: AdapterSettings) -> Iterator[tuple[str, Tensor]]:
    """The attached adapter's parameters, not copied, under the names of adapter.safetensors."""
    own = own_module(body, name)
    if own is not None:
        yield from own.tensors()
        return
    for layer in range(body_shape(body).layers):
        for role in getattr(settings, "targets", ()):
            wrapped: Any = linear_at(body, (layer, role))
            if isinstance(settings, LoraSettings):
                yield f"layers.{layer}.{role}.lora_a", wrapped.lora_A[_attribute(name)].weight
                yield f"layers.{layer}.{role}.lora_b", wrapped.lora_B[_attribute(name)].weight
            else:
                yield f"layers.{layer}.{role}.scale", wrapped.ia3_l[_attribute(name)].view(-1)


def _attribute(name: str) -> str:
    """A name for modules that is no attribute of theirs, as `keys` or `train` is."""
    return f"adapter_{name}"
