"""What an adapter is: its kind, its sizes, and the slots of the body that it changes.

A slot is a linear layer of a transformer block, named by its role in the blocks of BERT and its kin. With
x the layer's input and f(x) = W·x + b its output, the kinds change f to

lora        f(x) + (alpha / rank) · B·A·x                       (Hu et al. 2021, arXiv 2106.09685)
ia3         l ⊙ f(x); at the role `output` f(l ⊙ x)             (Liu et al. 2022, arXiv 2205.05638)
bias        f(x) + b'                                        (BitFit, Ben Zaken et al. 2022, arXiv 2106.10199)
sparse      f(x) + Δ·x, Δ being 0 but at some places            (Sung et al. 2021, arXiv 2111.09839)
bottleneck  f(x) + s·(U·σ(D·f(x) + d) + u)                      (Houlsby et al. 2019, arXiv 1902.00751)
prefix      attention also over P trained keys and values       (Li and Liang 2021, arXiv 2101.00190)
prompt      P trained vectors before those of the tokens        (Lester et al. 2021, arXiv 2104.08691)
mix_and_match  a prefix and a bottleneck beside a sub-layer     (He et al. 2022, arXiv 2110.04366)
unipelt     lora, a prefix and a bottleneck, each behind a gate (Mao et al. 2022, arXiv 2110.07577)
fusion      attention over what trained bottlenecks add         (Pfeiffer et al. 2021, arXiv 2005.00247)
hypernetwork  bottlenecks made of a language's and a task's vector (Üstün et al. 2020, arXiv 2004.14327)
stack       several adapters, each on top of the one before it  (Pfeiffer et al. 2020, arXiv 2005.00052)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from tercet.models.adapters.blocks import ROLES, BodyShape, Role, require_whole
from tercet.models.errors import CheckpointError

Nonlinearity = Literal["relu", "gelu", "tanh", "silu"]
Placement = Literal["houlsby", "feed_forward", "parallel"]
Shapes = dict[str, tuple[int, ...]]

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# What stands between the names of two adapters that a fixed router lays on each other, the lower one first.
PAIR_MARK = "+"
# The output of both sub-layers, or that of the feed-forward one only; before residual and layer norm. What
# is parallel to the feed-forward sub-layer (He et al. 2022, arXiv 2110.04366) reads its input and adds to its
# output, which is as much as to add to the residual. The adapter of Pfeiffer et al. (2020, arXiv 2005.00052)
# is none of these: it reads the output of the feed-forward sub-layer after residual and layer norm, adds
# to it before both, and the norm is taken again.
PLACES: dict[Placement, tuple[Role, ...]] = {
    "houlsby": ("attention_output", "output"),
    "feed_forward": ("output",),
    "parallel": ("residual",),
}
LARGEST_SCALE = 1e6
# The tensor of a sparse adapter that holds whole numbers.
INDICES = "indices"
# Exported graphs of adapters that one encoder keeps open, unless it is told otherwise.
ADAPTER_SESSIONS = 4
# (IA)³ scales the activations between the two feed-forward layers: the input of the second one.
INPUT_SCALED: Role = "output"


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Low-rank change of linear layers. It starts as the identity: B is 0.

    alpha: the change is scaled by alpha / rank; dropout: of the input while training; targets: roles.
    """

    kind: ClassVar[str] = "lora"
    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[Role, ...] = ("query", "value")

    def __post_init__(self) -> None:
        require_whole("rank", self.rank, 1)
        _require_number("alpha", self.alpha, 0.0, LARGEST_SCALE)
        _require_number("dropout", self.dropout, 0.0, 1.0)
        _require_roles(self.targets)

    @property
    def scale(self) -> float:
        """Factor of B·A."""
        return self.alpha / self.rank

    def shapes(self, body: BodyShape) -> Shapes:
        """`lora_a` float32[rank, in] and `lora_b` float32[out, rank] of each slot."""
        shapes: Shapes = {}
        for slot, role in slots_of(body, self.targets):
            wide, out = body.sizes(role)
            shapes[f"{slot}.lora_a"] = (self.rank, wide)
            shapes[f"{slot}.lora_b"] = (out, self.rank)
        return shapes


@dataclass(frozen=True, slots=True)
class Ia3Settings:
    """Learned scales of activations. It starts as the identity: all scales are 1."""

    kind: ClassVar[str] = "ia3"
    targets: tuple[Role, ...] = ("key", "value", "output")

    def __post_init__(self) -> None:
        _require_roles(self.targets)

    def shapes(self, body: BodyShape) -> Shapes:
        """`scale` of each slot, as wide as its output, or as its input at the role `output`."""
        return {
            f"{slot}.scale": (body.sizes(role)[0 if role == INPUT_SCALED else 1],)
            for slot, role in slots_of(body, self.targets)
        }


@dataclass(frozen=True, slots=True)
class BiasSettings:
    """Changes of biases alone. It starts as the identity: all changes are 0.

    That of `key` is not among the targets by default: added to all keys, it changes no attention.
    """

    kind: ClassVar[str] = "bias"
    targets: tuple[Role, ...] = ("query", "value", "attention_output", "intermediate", "output")

    def __post_init__(self) -> None:
        _require_roles(self.targets)

    def shapes(self, body: BodyShape) -> Shapes:
        """`bias` of each slot, as wide as its output."""
        return {f"{slot}.bias": (body.sizes(role)[1],) for slot, role in slots_of(body, self.targets)}


@dataclass(frozen=True, slots=True)
class SparseSettings:
    """Changes of `count` weights of linear layers. It starts as the identity: all changes are 0."""

    kind: ClassVar[str] = "sparse"
    count: int = 65_536
    targets: tuple[Role, ...] = ROLES

    def __post_init__(self) -> None:
        require_whole("count", self.count, 1)
        _require_roles(self.targets)

    def shapes(self, body: BodyShape) -> Shapes:
        """`indices` int32[count] of weights, ascending, and `values` float32[count] that are added to them.

        Raises CheckpointError where the layers have fewer weights.
        """
        weights = sum(matrix.size for matrix in body.matrices() if matrix.role in self.targets)
        if self.count > weights:
            raise CheckpointError(
                f"count is {self.count}; the layers {list(self.targets)} have {weights} weights"
            )
        return {INDICES: (self.count,), "values": (self.count,)}


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    """Trained keys and values that every token attends to, `length` of them in each block.

    It cannot start as the identity: any key takes some attention. Positions of tokens stay as they are.
    """

    kind: ClassVar[str] = "prefix"
    length: int = 16

    def __post_init__(self) -> None:
        require_whole("length", self.length, 1)

    def shapes(self, body: BodyShape) -> Shapes:
        """`prefix_key` and `prefix_value`, float32[length, hidden] of each block."""
        return {
            f"layers.{layer}.prefix_{part}": (self.length, body.hidden_size)
            for layer in range(body.layers)
            for part in ("key", "value")
        }


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """`length` trained vectors that go through all blocks before a text's, without positions of their own.

    It cannot start as the identity: they take some attention.
    """

    kind: ClassVar[str] = "prompt"
    length: int = 16

    def __post_init__(self) -> None:
        require_whole("length", self.length, 1)

    def shapes(self, body: BodyShape) -> Shapes:
        """`prompt`, float32[length, hidden]."""
        return {"prompt": (self.length, body.hidden_size)}


@dataclass(frozen=True, slots=True)
class BottleneckSettings:
    """A small feed-forward network after a sub-layer. It starts as the identity: U and u are 0.

    width: of its middle; placement: `houlsby` after both sub-layers, `feed_forward` after the second only,
    `parallel` beside the second; scale: factor of what it adds.
    """

    kind: ClassVar[str] = "bottleneck"
    width: int = 48
    nonlinearity: Nonlinearity = "relu"
    placement: Placement = "feed_forward"
    scale: float = 1.0

    def __post_init__(self) -> None:
        require_whole("width", self.width, 1)
        _require_number("scale", self.scale, 0.0, LARGEST_SCALE)
        _require_choice("nonlinearity", self.nonlinearity, get_args(Nonlinearity))
        _require_choice("placement", self.placement, get_args(Placement))

    @property
    def targets(self) -> tuple[Role, ...]:
        """The roles whose output it changes."""
        return PLACES[self.placement]

    def shapes(self, body: BodyShape) -> Shapes:
        """`down.weight` float32[width, out], `up.weight` float32[out, width], and the bias of each."""
        shapes: Shapes = {}
        for slot, role in slots_of(body, self.targets):
            _, out = body.sizes(role)
            shapes[f"{slot}.down.weight"] = (self.width, out)
            shapes[f"{slot}.down.bias"] = (self.width,)
            shapes[f"{slot}.up.weight"] = (out, self.width)
            shapes[f"{slot}.up.bias"] = (out,)
        return shapes


@dataclass(frozen=True, slots=True)
class MixAndMatchSettings:
    """A prefix and a bottleneck beside the feed-forward sub-layer, trained together (Mix-and-Match).

    length: of the prefix; width, nonlinearity, scale: of the bottleneck.
    """

    kind: ClassVar[str] = "mix_and_match"
    length: int = 16
    width: int = 48
    nonlinearity: Nonlinearity = "relu"
    scale: float = 4.0

    def __post_init__(self) -> None:
        _ = self.prefix, self.bottleneck  # which check their values

    @property
    def prefix(self) -> PrefixSettings:
        """The first of the two."""
        return PrefixSettings(self.length)

    @property
    def bottleneck(self) -> BottleneckSettings:
        """The second of the two."""
        return BottleneckSettings(self.width, self.nonlinearity, "parallel", self.scale)

    def shapes(self, body: BodyShape) -> Shapes:
        """The tensors of both."""
        return self.prefix.shapes(body) | self.bottleneck.shapes(body)


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Attention over bottlenecks that were trained before, copied and frozen (AdapterFusion).

    placement: of all bottlenecks; widths, nonlinearities, scales: of each of them.
    """

    kind: ClassVar[str] = "fusion"
    placement: Placement = "feed_forward"
    widths: tuple[int, ...] = ()
    nonlinearities: tuple[Nonlinearity, ...] = ()
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        columns = (self.widths, self.nonlinearities, self.scales)
        listed = all(isinstance(column, tuple) for column in columns)
        if not listed or len(self.widths) < 2 or len({len(column) for column in columns}) > 1:
            raise CheckpointError(
                f"widths, nonlinearities and scales are {columns!r}; a fusion has one of each for two "
                "bottlenecks or more"
            )
        _ = self.bottlenecks  # which check their values

    @staticmethod
    def of(bottlenecks: Sequence[BottleneckSettings]) -> FusionSettings:
        """The settings of a fusion of bottlenecks, all with the placement of the first."""
        return FusionSettings(
            bottlenecks[0].placement,
            tuple(each.width for each in bottlenecks),
            tuple(each.nonlinearity for each in bottlenecks),
            tuple(each.scale for each in bottlenecks),
        )

    @property
    def bottlenecks(self) -> tuple[BottleneckSettings, ...]:
        """What it attends over."""
        columns = zip(self.widths, self.nonlinearities, self.scales, strict=True)
        return tuple(BottleneckSettings(width, name, self.placement, s) for width, name, s in columns)

    @property
    def targets(self) -> tuple[Role, ...]:
        """The roles whose output it changes."""
        return PLACES[self.placement]

    def shapes(self, body: BodyShape) -> Shapes:
        """`query`, `key` and `value` float32[out, out] of each slot, and the tensors of the bottlenecks.

        `value` is the difference from the identity.
        """
        shapes: Shapes = {}
        for slot, role in slots_of(body, self.targets):
            size = body.sizes(role)[1]
            shapes |= {f"{slot}.{matrix}": (size, size) for matrix in ("query", "key", "value")}
        for number, bottleneck in enumerate(self.bottlenecks):
            for name, shape in bottleneck.shapes(body).items():
                shapes[fused_name(name, number)] = shape
        return shapes


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Other adapters of the same folder, each on top of the one before it, such as language, then task."""

    kind: ClassVar[str] = "stack"
    adapters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.adapters) < 2 or not all(is_adapter_name(name) for name in self.adapters):
            raise CheckpointError(f"adapters is {self.adapters!r}; a stack names two adapters or more")

    def shapes(self, body: BodyShape) -> Shapes:
        """Nothing: the adapters that it names hold the parameters."""
        return {}


def is_adapter_name(name: object) -> bool:
    """Whether a name is that of an adapter's folder: as that of a collection."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def require_adapter_name(name: str) -> None:
    """Raises CheckpointError unless a name is that of an adapter's folder."""
    if not is_adapter_name(name):
        raise CheckpointError(
            f"adapter name {name[:80]!r} does not match [a-z0-9][a-z0-9_-]{{0,63}}; choose another"
        )


def fused_name(name: str, number: int) -> str:
    """The name in a fusion of a tensor of its bottleneck with this number."""
    slot, down_or_up, part = name.rsplit(".", 2)
    return f"{slot}.bottlenecks.{number}.{down_or_up}.{part}"


def slots_of(body: BodyShape, roles: tuple[Role, ...]) -> list[tuple[str, Role]]:
    """The slots `layers.<i>.<role>` of these roles in all blocks, each with its role."""
    return [(f"layers.{layer}.{role}", role) for layer in range(body.layers) for role in roles]


def _require_number(name: str, value: object, least: float, below: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value < below:  # type: ignore[operator]  # a number
        raise CheckpointError(f"{name} is {value!r}; it must be a number from {least:g} and below {below:g}")


def _require_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise CheckpointError(f"{name} is {value!r}; it must be one of {list(allowed)}")


def _require_roles(targets: object) -> None:
    roles = targets if isinstance(targets, tuple) else ()
    if not roles or any(role not in ROLES or roles.count(role) > 1 for role in roles):
        raise CheckpointError(f"targets is {targets!r}; it must be distinct roles of {list(ROLES)}")
