"""What an adapter is: its kind, its sizes, and the slots of the body that it changes.

A slot is a linear layer of a transformer block, named by its role in the blocks of BERT and its kin. With
x the layer's input and f(x) = W·x + b its output, the kinds change f to

lora        f(x) + (alpha / rank) · B·A·x                       (Hu et al. 2021, arXiv 2106.09685)
ia3         l ⊙ f(x); at the role `output` f(l ⊙ x)             (Liu et al. 2022, arXiv 2205.05638)
bias        f(x) + b'                                        (BitFit, Ben Zaken et al. 2022, arXiv 2106.10199)
bottleneck  f(x) + U·σ(D·f(x) + d) + u                          (Houlsby et al. 2019, arXiv 1902.00751)
prefix      attention also over P trained keys and values       (Li and Liang 2021, arXiv 2101.00190)
stack       several adapters, each on top of the one before it  (Pfeiffer et al. 2020, arXiv 2005.00052)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar, get_args

from tercet.models.errors import CheckpointError

Settings = TypeVar("Settings")

Role = Literal["query", "key", "value", "attention_output", "intermediate", "output"]
ROLES: tuple[Role, ...] = get_args(Role)
# Where the layer of each role is within a block of BERT, RoBERTa, XLM-RoBERTa, CamemBERT and ELECTRA.
PATHS: dict[Role, str] = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "intermediate": "intermediate.dense",
    "output": "output.dense",
}
Nonlinearity = Literal["relu", "gelu", "tanh", "silu"]
Placement = Literal["houlsby", "feed_forward"]
Shapes = dict[str, tuple[int, ...]]

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# What stands between the names of two adapters that a fixed router lays on each other, the lower one first.
PAIR_MARK = "+"
# The output of both sub-layers, or that of the feed-forward one only; before residual and layer norm. The
# adapter of Pfeiffer et al. (2020, arXiv 2005.00052) is neither: it reads the output of the
# feed-forward sub-layer after residual and layer norm, adds to it before both, and the norm is taken again.
PLACES: dict[Placement, tuple[Role, ...]] = {
    "houlsby": ("attention_output", "output"),
    "feed_forward": ("output",),
}
# What `feed_forward` is called in digests, and in some adapters on disk. Digests are parts of fingerprints,
# which collections keep.
FEED_FORWARD_ON_DISK = "pfeiffer"
LARGEST_ALPHA = 1e6
# Exported graphs of adapters that one encoder keeps open, unless it is told otherwise.
ADAPTER_SESSIONS = 4
# (IA)³ scales the activations between the two feed-forward layers: the input of the second one.
INPUT_SCALED: Role = "output"


@dataclass(frozen=True, slots=True)
class BodyShape:
    """Sizes of a body that adapters depend on: blocks, width of the hidden states, feed-forward width."""

    layers: int
    hidden_size: int
    intermediate_size: int

    def __post_init__(self) -> None:
        for name in ("layers", "hidden_size", "intermediate_size"):
            _require_whole(name, getattr(self, name), 1)

    @staticmethod
    def of_config(config: Mapping[str, Any]) -> BodyShape:
        """From a model's config.json. Raises CheckpointError where it lacks a size."""
        keys = ("num_hidden_layers", "hidden_size", "intermediate_size")
        missing = [key for key in keys if key not in config]
        if missing:
            raise CheckpointError(
                f"the model's configuration has no {missing}; adapters need the blocks of BERT or XLM-RoBERTa"
            )
        return BodyShape(*(config[key] for key in keys))

    def sizes(self, role: Role) -> tuple[int, int]:
        """Width of the input and of the output of the linear layer with this role."""
        wide, narrow = self.intermediate_size, self.hidden_size
        return (wide if role == "output" else narrow), (wide if role == "intermediate" else narrow)


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
        _require_whole("rank", self.rank, 1)
        _require_number("alpha", self.alpha, 0.0, LARGEST_ALPHA)
        _require_number("dropout", self.dropout, 0.0, 1.0)
        _require_roles(self.targets)

    @property
    def scale(self) -> float:
        """Factor of B·A."""
        return self.alpha / self.rank

    def shapes(self, body: BodyShape) -> Shapes:
        """`lora_a` float32[rank, in] and `lora_b` float32[out, rank] of each slot."""
        shapes: Shapes = {}
        for slot, role in _slots(body, self.targets):
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
            for slot, role in _slots(body, self.targets)
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
        return {f"{slot}.bias": (body.sizes(role)[1],) for slot, role in _slots(body, self.targets)}


@dataclass(frozen=True, slots=True)
class PrefixSettings:
    """Trained keys and values that every token attends to, `length` of them in each block.

    It cannot start as the identity: any key takes some attention. Positions of tokens stay as they are.
    """

    kind: ClassVar[str] = "prefix"
    length: int = 16

    def __post_init__(self) -> None:
        _require_whole("length", self.length, 1)

    def shapes(self, body: BodyShape) -> Shapes:
        """`prefix_key` and `prefix_value`, float32[length, hidden] of each block."""
        return {
            f"layers.{layer}.prefix_{part}": (self.length, body.hidden_size)
            for layer in range(body.layers)
            for part in ("key", "value")
        }


@dataclass(frozen=True, slots=True)
class BottleneckSettings:
    """A small feed-forward network after a sub-layer. It starts as the identity: U and u are 0.

    width: of its middle; placement: `houlsby` after both sub-layers, `feed_forward` after the second only.
    """

    kind: ClassVar[str] = "bottleneck"
    width: int = 48
    nonlinearity: Nonlinearity = "relu"
    placement: Placement = "feed_forward"

    def __post_init__(self) -> None:
        _require_whole("width", self.width, 1)
        _require_choice("nonlinearity", self.nonlinearity, get_args(Nonlinearity))
        _require_choice("placement", self.placement, get_args(Placement))

    @property
    def targets(self) -> tuple[Role, ...]:
        """The roles whose output it changes."""
        return PLACES[self.placement]

    def shapes(self, body: BodyShape) -> Shapes:
        """`down.weight` float32[width, out], `up.weight` float32[out, width], and the bias of each."""
        shapes: Shapes = {}
        for slot, role in _slots(body, self.targets):
            _, out = body.sizes(role)
            shapes[f"{slot}.down.weight"] = (self.width, out)
            shapes[f"{slot}.down.bias"] = (self.width,)
            shapes[f"{slot}.up.weight"] = (out, self.width)
            shapes[f"{slot}.up.bias"] = (out,)
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


AdapterSettings = (
    LoraSettings | Ia3Settings | BiasSettings | PrefixSettings | BottleneckSettings | StackSettings
)
KINDS: dict[str, type[AdapterSettings]] = {kind.kind: kind for kind in get_args(AdapterSettings)}


def settings_of(kind: object, values: Mapping[str, Any]) -> AdapterSettings:
    """Settings of a kind of adapter from a JSON object; absent keys take their defaults. Raises as
    `settings_of_kind`.
    """
    return settings_of_kind(KINDS, kind, values)


def settings_of_kind(
    kinds: Mapping[str, type[Settings]], kind: object, values: Mapping[str, Any]
) -> Settings:
    """An instance of `kinds[kind]`, a dataclass, from a JSON object.

    Raises CheckpointError for an unknown kind or key, a missing key, or a value out of range.
    """
    if not isinstance(kind, str) or kind not in kinds:
        raise CheckpointError(f"kind is {kind!r}; it must be one of {list(kinds)}")
    made: Any = kinds[kind]
    known = [field.name for field in fields(made)]
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise CheckpointError(
            f"the settings of kind {kind} have unknown keys {unknown}; they may have {known}"
        )
    try:
        settings: Settings = made(
            **{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        )
    except TypeError as error:
        raise CheckpointError(f"the settings of kind {kind} need {known}: {error}") from error
    return settings


def settings_json(settings: Any) -> dict[str, Any]:
    """All settings of an adapter or router as a JSON object."""
    return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(settings).items()}


def settings_from_disk(kind: object, values: Mapping[str, Any]) -> AdapterSettings:
    """Settings of a kind as `adapter.json` has them. Raises as `settings_of_kind`."""
    if values.get("placement") == FEED_FORWARD_ON_DISK:
        values = {**values, "placement": "feed_forward"}
    return settings_of(kind, values)


def digested_settings(settings: AdapterSettings) -> dict[str, Any]:
    """All settings as digests have them."""
    digested = settings_json(settings)
    if digested.get("placement") == "feed_forward":
        digested["placement"] = FEED_FORWARD_ON_DISK
    return digested


def is_adapter_name(name: object) -> bool:
    """Whether a name is that of an adapter's folder: as that of a collection."""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def require_adapter_name(name: str) -> None:
    """Raises CheckpointError unless a name is that of an adapter's folder."""
    if not is_adapter_name(name):
        raise CheckpointError(
            f"adapter name {name[:80]!r} does not match [a-z0-9][a-z0-9_-]{{0,63}}; choose another"
        )


def _slots(body: BodyShape, roles: tuple[Role, ...]) -> list[tuple[str, Role]]:
    return [(f"layers.{layer}.{role}", role) for layer in range(body.layers) for role in roles]


def _require_whole(name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise CheckpointError(f"{name} is {value!r}; it must be a whole number of at least {least}")


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
