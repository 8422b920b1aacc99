"""The modules that hold each kind of adapter: made new for training, or filled from a file for serving.

A kind is one module here, or in a file of its own, and one line of `MODULES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from tercet.models.adapters.blocks import BodyShape, Role
from tercet.models.adapters.body import KeysAndValues, Part, Slot
from tercet.models.adapters.changes import (
    SMALL_STD,
    Addition,
    Bottleneck,
    Change,
    Fusion,
    Gated,
    Generated,
    Lora,
    ScaledInput,
    ScaledOutput,
    Shifted,
    Sparse,
    SparseWeights,
)
from tercet.models.adapters.compound_settings import HypernetworkSettings, UnipeltSettings
from tercet.models.adapters.kinds import AdapterSettings
from tercet.models.adapters.record import Adapter, ResolvedAdapter
from tercet.models.adapters.settings import (
    INDICES,
    INPUT_SCALED,
    BiasSettings,
    BottleneckSettings,
    FusionSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
)


class AdapterModule(nn.Module, ABC):
    """The parameters of one adapter."""

    @abstractmethod
    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All of them, not copied, under the names of adapter.safetensors."""

    @abstractmethod
    def part(self) -> Part:
        """What they do in a body."""


class Changes(AdapterModule):
    """Changes of linear layers, each with parameters of its own."""

    def __init__(
        self, targets: tuple[Role, ...], shape: BodyShape, new_change: Callable[[Role], Change]
    ) -> None:
        """new_change: what the adapter does in a slot, before it is trained."""
        super().__init__()
        self._slots: list[Slot] = [(layer, role) for layer in range(shape.layers) for role in targets]
        for layer, role in self._slots:
            self.add_module(f"{layer}_{role}", new_change(role))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Block by block, and role by role."""
        for (layer, role), change in self.part().changes.items():
            for name, parameter in change.named_parameters():
                yield f"layers.{layer}.{role}.{name}", parameter

    def part(self) -> Part:
        """The change in each slot."""
        return Part({slot: getattr(self, f"{slot[0]}_{slot[1]}") for slot in self._slots})


class SparseChanges(AdapterModule):
    """Changes of some weights of all layers together."""

    def __init__(self, settings: SparseSettings, shape: BodyShape) -> None:
        super().__init__()
        [(count,), _] = settings.shapes(shape).values()
        self.weights = SparseWeights(torch.arange(count), torch.zeros(count))
        self._targets, self._shape = settings.targets, shape

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The places, and what is added there."""
        yield INDICES, self.weights.indices
        yield "values", self.weights.values

    def part(self) -> Part:
        """Every layer has the weights of all while they train, and then its own, where it has any."""
        changes: dict[Slot, Change] = {}
        for matrix in self._shape.matrices():
            weights = self.weights
            if not weights.values.requires_grad:
                own = (weights.indices >= matrix.start) & (weights.indices < matrix.start + matrix.size)
                if not own.any():
                    continue
                weights = SparseWeights(weights.indices[own], weights.values[own]).requires_grad_(False)
            elif matrix.role not in self._targets:
                continue
            changes[matrix.layer, matrix.role] = Sparse(weights, matrix.start, matrix.shape)
        return Part(changes)


class Prefix(AdapterModule):
    """Keys and values of all blocks, as one table float[P, layers · 2 · hidden]."""

    def __init__(self, settings: PrefixSettings, shape: BodyShape) -> None:
        super().__init__()
        self._shape = shape
        self.embedding = nn.Embedding(settings.length, shape.layers * 2 * shape.hidden_size)
        # Drawn from N(0, 1), keys would take most of the attention from the first step on.
        nn.init.normal_(self.embedding.weight, std=SMALL_STD)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Keys and values of each block."""
        for layer in range(self._shape.layers):
            keys, values = self.of_block(layer)
            yield f"layers.{layer}.prefix_key", keys
            yield f"layers.{layer}.prefix_value", values

    def part(self) -> Part:
        """No change of a layer."""
        return Part({}, lambda layer, _: self.of_block(layer))

    def of_block(self, layer: int) -> KeysAndValues:
        """Keys and values float[P, hidden] of a block."""
        table = self.embedding.weight.view(-1, self._shape.layers, 2, self._shape.hidden_size)
        return table[:, layer, 0], table[:, layer, 1]


class Prompt(AdapterModule):
    """Vectors that go through the blocks before a text's."""

    def __init__(self, settings: PromptSettings, shape: BodyShape) -> None:
        super().__init__()
        self.prompt = nn.Parameter(SMALL_STD * torch.randn(settings.length, shape.hidden_size))

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All vectors."""
        yield "prompt", self.prompt

    def part(self) -> Part:
        """No change of a layer."""
        return Part({}, prompt=self.prompt)


class MixAndMatch(AdapterModule):
    """A prefix and a parallel bottleneck."""

    def __init__(self, settings: MixAndMatchSettings, shape: BodyShape) -> None:
        super().__init__()
        self.prefix = new_module(settings.prefix, shape)
        self.bottleneck = new_module(settings.bottleneck, shape)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Those of both."""
        yield from self.prefix.tensors()
        yield from self.bottleneck.tensors()

    def part(self) -> Part:
        """Both at once."""
        return Part(self.bottleneck.part().changes, self.prefix.part().prefix)


class Unipelt(AdapterModule):
    """LoRA, a prefix and a bottleneck, each behind gates of its own."""

    def __init__(self, settings: UnipeltSettings, shape: BodyShape) -> None:
        super().__init__()
        lora, prefix, bottleneck = settings.members
        self.lora, self.bottleneck = new_module(lora, shape), new_module(bottleneck, shape)
        self.prefix = Prefix(prefix, shape)
        self._places = tuple(settings.gates(shape))
        self.gates = nn.ModuleDict()
        for place, size in settings.gates(shape).items():
            gate = nn.Linear(size, 1)
            nn.init.normal_(gate.weight, std=SMALL_STD)
            nn.init.zeros_(gate.bias)
            self.gates[place.replace(".", "_")] = gate  # the name of a module has no dot

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Those of all three, and of their gates."""
        for member in (self.lora, self.prefix, self.bottleneck):
            yield from member.tensors()
        for place in self._places:
            yield f"{place}.gate.weight", self._gate(place).weight
            yield f"{place}.gate.bias", self._gate(place).bias

    def part(self) -> Part:
        """All at once."""
        changes: dict[Slot, Change] = {}
        for member in (self.lora, self.bottleneck):
            for (layer, role), change in member.part().changes.items():
                assert isinstance(change, Addition)  # noqa: S101 - as both kinds are
                changes[layer, role] = Gated(change, self._gate(f"layers.{layer}.{role}"))
        return Part(changes, self._gated_prefix)

    def _gated_prefix(self, layer: int, query: Tensor) -> KeysAndValues:
        """Keys and values float[R, P, hidden], by the first token's query of each text."""
        keys, values = self.prefix.of_block(layer)
        gate = self._gate(f"layers.{layer}.prefix")
        first = query[:, :, 0].flatten(1).to(gate.weight.dtype)
        opened = torch.sigmoid(gate(first)).unsqueeze(-1)  # (R, 1, 1)
        return opened * keys, opened * values

    def _gate(self, place: str) -> nn.Linear:
        gate = self.gates[place.replace(".", "_")]
        assert isinstance(gate, nn.Linear)  # noqa: S101 - as all are
        return gate


class Hypernetwork(AdapterModule):
    """Vectors of languages and tasks, and what makes bottlenecks of them: of one pair at a time."""

    def __init__(self, settings: HypernetworkSettings, shape: BodyShape) -> None:
        super().__init__()
        self._settings = settings
        self.languages = nn.Parameter(torch.randn(len(settings.languages), settings.size))
        self.tasks = nn.Parameter(torch.randn(len(settings.tasks), settings.size))
        self.generators = Changes(
            settings.targets, shape, lambda role: Generated(shape.sizes(role)[1], settings, self.vector)
        )
        self._pair = (0, 0)

    def choose(self, language: str, task: str) -> None:
        """Texts from now on are of this language and task."""
        self._pair = (self._settings.languages.index(language), self._settings.tasks.index(task))

    def vector(self) -> Tensor:
        """Those of the language and the task that are chosen, float[2 · size]."""
        language, task = self._pair
        return torch.cat([self.languages[language], self.tasks[task]])

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Vectors, then generators."""
        yield "languages", self.languages
        yield "tasks", self.tasks
        yield from self.generators.tensors()

    def part(self) -> Part:
        """What the bottlenecks of the pair do."""
        return self.generators.part()


def _lora(settings: LoraSettings, shape: BodyShape) -> AdapterModule:
    def change(role: Role) -> Change:
        wide, out = shape.sizes(role)
        drawn = torch.empty(settings.rank, wide)
        nn.init.kaiming_uniform_(drawn, a=math.sqrt(5))  # as nn.Linear starts, and PEFT
        return Lora(drawn, torch.zeros(out, settings.rank), settings.scale, settings.dropout)

    return Changes(settings.targets, shape, change)


def _ia3(settings: Ia3Settings, shape: BodyShape) -> AdapterModule:
    def change(role: Role) -> Change:
        wide, out = shape.sizes(role)
        return ScaledInput(torch.ones(wide)) if role == INPUT_SCALED else ScaledOutput(torch.ones(out))

    return Changes(settings.targets, shape, change)


def _bias(settings: BiasSettings, shape: BodyShape) -> AdapterModule:
    return Changes(settings.targets, shape, lambda role: Shifted(torch.zeros(shape.sizes(role)[1])))


def _bottleneck(settings: BottleneckSettings, shape: BodyShape) -> AdapterModule:
    return Changes(settings.targets, shape, lambda role: Bottleneck(shape.sizes(role)[1], settings))


def _fusion(settings: FusionSettings, shape: BodyShape) -> AdapterModule:
    return Changes(settings.targets, shape, lambda role: Fusion(shape.sizes(role)[1], settings))


MODULES: dict[str, Callable[[Any, BodyShape], AdapterModule]] = {
    LoraSettings.kind: _lora,
    Ia3Settings.kind: _ia3,
    BiasSettings.kind: _bias,
    BottleneckSettings.kind: _bottleneck,
    SparseSettings.kind: SparseChanges,
    PrefixSettings.kind: Prefix,
    PromptSettings.kind: Prompt,
    MixAndMatchSettings.kind: MixAndMatch,
    UnipeltSettings.kind: Unipelt,
    HypernetworkSettings.kind: Hypernetwork,
    FusionSettings.kind: _fusion,
}


def new_module(settings: AdapterSettings, shape: BodyShape) -> AdapterModule:
    """An adapter that is no stack, before it is trained."""
    return MODULES[settings.kind](settings, shape)


def load_parts(adapter: ResolvedAdapter, body: nn.Module) -> tuple[Part, ...]:
    """The parts of an adapter in torch, on the body's device and in its precision."""
    return tuple(load_part(part, body) for part in adapter.parts)


def load_part(adapter: Adapter, body: nn.Module) -> Part:
    """An adapter that is no stack, on the body's device and in its precision."""
    like = next(body.parameters())
    with torch.device("meta"):  # where nothing is drawn, so that a run's random numbers stay as they are
        module = new_module(adapter.settings, adapter.base.body)
    module.to_empty(device="cpu").requires_grad_(False).eval()
    for name, tensor in module.tensors():
        tensor.copy_(torch.from_numpy(adapter.arrays[name]))
    return module.to(like.device, like.dtype).part()
