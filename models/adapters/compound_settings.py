"""Settings of adapters that are made of those of other kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tercet.models.adapters.blocks import BodyShape, Role, require_whole
from tercet.models.adapters.settings import (
    BottleneckSettings,
    LoraSettings,
    Nonlinearity,
    PrefixSettings,
    Shapes,
    is_adapter_name,
    slots_of,
)
from tercet.models.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class UnipeltSettings:
    """LoRA of query and value, a prefix and a bottleneck after the feed-forward sub-layer, trained together.

    Each has a gate σ(w·z + b) in each place. LoRA and bottleneck are added times the gate of each token, z
    being what they read. Keys and values of the prefix are multiplied by that of each text, z being the query
    of its first token: no padding has a part in it. rank, alpha: of LoRA; length: of the prefix; width,
    nonlinearity: of the bottleneck.
    """

    kind: ClassVar[str] = "unipelt"
    rank: int = 8
    alpha: float = 16.0
    length: int = 10
    width: int = 48
    nonlinearity: Nonlinearity = "relu"

    def __post_init__(self) -> None:
        _ = self.members  # which check their values

    @property
    def members(self) -> tuple[LoraSettings, PrefixSettings, BottleneckSettings]:
        """What it is made of."""
        lora = LoraSettings(self.rank, self.alpha)
        return lora, PrefixSettings(self.length), BottleneckSettings(self.width, self.nonlinearity)

    def gates(self, body: BodyShape) -> dict[str, int]:
        """The places `layers.<i>.<role or prefix>` of gates, and how many numbers each reads."""
        lora, _, bottleneck = self.members
        places = [(slot, body.sizes(role)[0]) for slot, role in slots_of(body, lora.targets)]
        places += [(slot, body.sizes(role)[1]) for slot, role in slots_of(body, bottleneck.targets)]
        return dict(places) | {f"layers.{layer}.prefix": body.hidden_size for layer in range(body.layers)}

    def shapes(self, body: BodyShape) -> Shapes:
        """The tensors of all three, and of each gate `weight` float32[1, in] and `bias` float32[1]."""
        shapes: Shapes = {}
        for member in self.members:
            shapes |= member.shapes(body)
        for place, size in self.gates(body).items():
            shapes |= {f"{place}.gate.weight": (1, size), f"{place}.gate.bias": (1,)}
        return shapes


@dataclass(frozen=True, slots=True)
class HypernetworkSettings:
    """Bottlenecks after the feed-forward sub-layers for every pair of a language and a task, seen or not.

    The parameters of that in a block are θ = G·[l; t], G being a matrix of the block, l the vector of the
    language and t that of the task, of `size` numbers each. Alone it computes nothing: a pair does.
    languages, tasks: their names; width, nonlinearity: of the bottlenecks.
    """

    kind: ClassVar[str] = "hypernetwork"
    languages: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    size: int = 8
    width: int = 24
    nonlinearity: Nonlinearity = "relu"

    def __post_init__(self) -> None:
        for key in ("languages", "tasks"):
            names = getattr(self, key)
            listed = isinstance(names, tuple) and len(names) > 0 and all(map(is_adapter_name, names))
            if not listed or len(set(names)) < len(names):
                raise CheckpointError(
                    f"{key} is {names!r:.80}; it must have distinct names as of adapters, one or more"
                )
        require_whole("size", self.size, 1)
        _ = self.bottleneck  # which checks its values

    @property
    def bottleneck(self) -> BottleneckSettings:
        """What it makes."""
        return BottleneckSettings(self.width, self.nonlinearity)

    @property
    def targets(self) -> tuple[Role, ...]:
        """The roles whose output it changes."""
        return self.bottleneck.targets

    def shapes(self, body: BodyShape) -> Shapes:
        """`languages` and `tasks` float32[N, size], and `generator` float32[P, 2 · size] of each slot.

        The P rows are the parameters of a bottleneck, in the order of its tensors, each row by row.
        """
        shapes: Shapes = {
            "languages": (len(self.languages), self.size),
            "tasks": (len(self.tasks), self.size),
        }
        for slot, role in slots_of(body, self.targets):
            parameters = self.width * (2 * body.sizes(role)[1] + 1) + body.sizes(role)[1]
            shapes[f"{slot}.generator"] = (parameters, 2 * self.size)
        return shapes
