"""Training an adapter: attached to a frozen body, its parameters listed, saved, and read back.

LoRA, (IA)³ and prefixes are PEFT's; bottlenecks, biases, prompts and sparse changes, which PEFT has not, are
ours. So are modules that train together, whatever their kind, since PEFT's act on all rows alike. Saved
tensors have names of our own, so that no file depends on PEFT's insides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.adapters.blocks import BodyShape, Role
from tercet.models.adapters.body import (
    ActiveAdapters,
    FixedAdapters,
    KeysAndValues,
    Part,
    Slot,
    body_shape,
    install,
    linear_at,
    load_parts,
    path_of,
)
from tercet.models.adapters.changes import (
    SMALL_STD,
    Bottleneck,
    Change,
    Lora,
    ScaledInput,
    ScaledOutput,
    Shifted,
    Sparse,
    SparseWeights,
)
from tercet.models.adapters.files import write_adapter
from tercet.models.adapters.record import Adapter, AdapterBase, ResolvedAdapter
from tercet.models.adapters.settings import (
    INDICES,
    INPUT_SCALED,
    AdapterSettings,
    BottleneckSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
    StackSettings,
    require_adapter_name,
)
from tercet.models.errors import CheckpointError, UnsupportedError
from tercet.models.representations import Float32, Int32
from tercet.models.weights.head_weights import HeadWeights

try:
    from peft import IA3Config, LoraConfig, PrefixEncoder, PrefixTuningConfig, inject_adapter_in_model
except ImportError as error:
    raise UnsupportedError(
        f"training an adapter needs peft ({error}): pip install -c constraints.txt -e '.[train]'"
    ) from error


def attach(
    body: nn.Module, name: str, settings: AdapterSettings, *, below: Sequence[ResolvedAdapter] = ()
) -> nn.Module:
    """The body, changed in place: all its parameters frozen but those of a new adapter, in float32.

    It computes what it did before, except with a prefix or a prompt, which take attention from the start.
    Kind sparse changes the largest weights, until `choose_weights` chooses others.
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
    weights: Any = body.get_submodule(_attribute(name))
    ranked = [matrix for matrix in body_shape(body).matrices() if (matrix.layer, matrix.role) in scores]
    flat = torch.cat([scores[matrix.layer, matrix.role].detach().flatten() for matrix in ranked])
    numbers = torch.cat([torch.arange(matrix.size) + matrix.start for matrix in ranked])
    largest = flat.topk(settings.count).indices.cpu()
    weights.indices.copy_(numbers[largest].sort().values)


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
    if isinstance(settings, PrefixSettings):
        return _new_prefix(body, name, settings)
    if isinstance(settings, PromptSettings):
        return _new_prompt(body, name, settings)
    if isinstance(settings, SparseSettings):
        return _new_sparse_changes(body, name, settings)
    if isinstance(settings, MixAndMatchSettings):
        prefix, bottleneck = (_new_part(body, *part) for part in _parts_of(name, settings))
        return Part(bottleneck.changes, prefix.prefix)
    return _new_changes(body, name, settings)


def _parts_of(
    name: str, settings: MixAndMatchSettings
) -> tuple[tuple[str, PrefixSettings], tuple[str, BottleneckSettings]]:
    """Both, with the name of each in the body."""
    return (f"{name}_prefix", settings.prefix), (f"{name}_bottleneck", settings.bottleneck)


def _new_changes(body: nn.Module, name: str, settings: AdapterSettings) -> Part:
    shape, device = body_shape(body), next(body.parameters()).device
    changes: dict[Slot, Change] = {
        (layer, role): _new_change(settings, role, shape).to(device)
        for layer in range(shape.layers)
        for role in getattr(settings, "targets", ())
    }
    modules = {_module_name(slot): change for slot, change in changes.items()}
    body.add_module(_attribute(name), nn.ModuleDict(modules))
    return Part(changes)


def _new_sparse_changes(body: nn.Module, name: str, settings: SparseSettings) -> Part:
    shape = body_shape(body)
    [(count,), _] = settings.shapes(shape).values()
    weights = SparseWeights(torch.arange(count), torch.zeros(count)).to(next(body.parameters()).device)
    body.add_module(_attribute(name), weights)
    sizes = {slot: weight.abs() for slot, weight in weights_to_choose_from(body, settings).items()}
    choose_weights(body, name, settings, sizes)
    targets = (matrix for matrix in shape.matrices() if matrix.role in settings.targets)
    return Part(
        {(matrix.layer, matrix.role): Sparse(weights, matrix.start, matrix.shape) for matrix in targets}
    )


def _new_change(settings: AdapterSettings, role: Role, shape: BodyShape) -> Change:
    """What an adapter does in one slot, before it is trained."""
    wide, out = shape.sizes(role)
    if isinstance(settings, LoraSettings):
        drawn = torch.empty(settings.rank, wide)
        nn.init.kaiming_uniform_(drawn, a=math.sqrt(5))  # as nn.Linear starts, and PEFT
        return Lora(drawn, torch.zeros(out, settings.rank), settings.scale, settings.dropout)
    if isinstance(settings, Ia3Settings):
        return ScaledInput(torch.ones(wide)) if role == INPUT_SCALED else ScaledOutput(torch.ones(out))
    if isinstance(settings, BottleneckSettings):
        return Bottleneck(out, settings)
    return Shifted(torch.zeros(out))


def _new_prefix(body: nn.Module, name: str, settings: PrefixSettings) -> Part:
    shape, config = body_shape(body), _config(body)
    encoder: Any = PrefixEncoder(  # type: ignore[no-untyped-call]  # PEFT leaves it untyped
        PrefixTuningConfig(
            num_virtual_tokens=settings.length,
            token_dim=shape.hidden_size,
            num_layers=shape.layers,
            num_attention_heads=config.num_attention_heads,
            num_transformer_submodules=1,
            encoder_hidden_size=shape.hidden_size,
        )
    )
    # Drawn from N(0, 1), as PEFT leaves them, keys would take most of the attention from the first step on.
    nn.init.normal_(encoder.embedding.weight, std=SMALL_STD)
    body.add_module(_attribute(name), encoder.to(next(body.parameters()).device))
    return Part({}, lambda layer: _prefix_of(encoder.embedding.weight, layer, shape))


def _new_prompt(body: nn.Module, name: str, settings: PromptSettings) -> Part:
    size = settings.length, body_shape(body).hidden_size
    prompt = nn.Parameter(SMALL_STD * torch.randn(size).to(next(body.parameters()).device))
    body.register_parameter(_attribute(name), prompt)
    return Part({}, prompt=prompt)


def _prefix_of(weight: Tensor, layer: int, shape: BodyShape) -> KeysAndValues:
    """Keys and values of one block from PEFT's table float[P, layers · 2 · hidden]."""
    table = weight.view(-1, shape.layers, 2, shape.hidden_size)
    return table[:, layer, 0], table[:, layer, 1]


def named_tensors(body: nn.Module, name: str, settings: AdapterSettings) -> Iterator[tuple[str, Tensor]]:
    """The attached adapter's parameters, not copied, under the names of adapter.safetensors."""
    shape = body_shape(body)
    if isinstance(settings, MixAndMatchSettings):
        for part in _parts_of(name, settings):
            yield from named_tensors(body, *part)
        return
    if isinstance(settings, PromptSettings):
        yield "prompt", body.get_parameter(_attribute(name))
        return
    if isinstance(settings, SparseSettings):
        weights: Any = body.get_submodule(_attribute(name))
        yield INDICES, weights.indices
        yield "values", weights.values
        return
    for layer in range(shape.layers):
        if isinstance(settings, PrefixSettings):
            encoder: Any = body.get_submodule(_attribute(name))
            keys, values = _prefix_of(encoder.embedding.weight, layer, shape)
            yield f"layers.{layer}.prefix_key", keys
            yield f"layers.{layer}.prefix_value", values
            continue
        for role in getattr(settings, "targets", ()):
            for key, parameter in _parameters_at(body, name, (layer, role), settings):
                yield f"layers.{layer}.{role}.{key}", parameter


def _parameters_at(
    body: nn.Module, name: str, slot: Slot, settings: AdapterSettings
) -> Iterator[tuple[str, Tensor]]:
    """An adapter's parameters in a slot, under the last part of their names."""
    own = getattr(body, _attribute(name), None)
    if own is not None:
        yield from own.get_submodule(_module_name(slot)).named_parameters()
        return
    wrapped: Any = linear_at(body, slot)
    if isinstance(settings, LoraSettings):
        yield "lora_a", wrapped.lora_A[_attribute(name)].weight
        yield "lora_b", wrapped.lora_B[_attribute(name)].weight
    else:
        yield "scale", wrapped.ia3_l[_attribute(name)].view(-1)


def _attribute(name: str) -> str:
    """A name for modules that is no attribute of theirs, as `keys` or `train` is."""
    return f"adapter_{name}"


def _module_name(slot: Slot) -> str:
    return f"{slot[0]}_{slot[1]}"


def _config(body: nn.Module) -> Any:
    return body.config
