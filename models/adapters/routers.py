"""What a router is: how it finds the adapters that a text goes through.

With x the unit dense vector of a text by the base encoder, and one score for each adapter it routes among
(Pfeiffer et al. 2023, arXiv 2302.11529, section 4):

fixed     a table from a tag, such as a language, to an adapter; the text plays no part
centroid  the nearest of K unit vectors c_k, that is the largest c_k·x
gate      the largest of a linear layer, w_k·x + b_k
soft      all of them, each by its weight in softmax(scores / temperature)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tercet.models.adapters.settings import is_adapter_name, settings_json, settings_of_kind
from tercet.models.errors import AdapterNotFoundError, CheckpointError
from tercet.models.fingerprint import arrays_digest, json_digest
from tercet.models.representations import Float32, Route

TagKind = Literal["language", "domain", "collection"]
Scores = Literal["centroid", "gate"]
# What stands between a fixed router's name and a tag, where both are given.
TAG_MARK = ":"
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
UNIT_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class FixedSettings:
    """A table from a tag to an adapter. by: what tags are, and with `collection` what they are by default.

    default: the adapter for any other tag, and for none. None is the base everywhere.
    """

    kind: ClassVar[str] = "fixed"
    by: TagKind
    table: Mapping[str, str | None]
    default: str | None = None

    def __post_init__(self) -> None:
        if self.by not in get_args(TagKind):
            raise CheckpointError(f"by is {self.by!r}; it must be one of {list(get_args(TagKind))}")
        if not isinstance(self.table, Mapping) or not all(TAG.fullmatch(tag) for tag in self.table):
            raise CheckpointError(f"table is {self.table!r}; its keys must match {TAG.pattern}")
        for name in self.adapters:
            _require_adapter(name)

    @property
    def adapters(self) -> tuple[str | None, ...]:
        """All that it can choose, each once."""
        return tuple(dict.fromkeys([*self.table.values(), self.default]))

    def adapter_for(self, tag: str | None) -> str | None:
        """The adapter of a tag."""
        return self.default if tag is None else self.table.get(tag, self.default)


@dataclass(frozen=True, slots=True)
class CentroidSettings:
    """Chooses the adapter of the nearest centroid. adapters: one for each centroid, None for the base."""

    kind: ClassVar[str] = "centroid"
    adapters: tuple[str | None, ...]

    def __post_init__(self) -> None:
        _require_choice(self.adapters)


@dataclass(frozen=True, slots=True)
class GateSettings:
    """Chooses the adapter with the largest score of a linear layer. adapters: one for each output."""

    kind: ClassVar[str] = "gate"
    adapters: tuple[str | None, ...]

    def __post_init__(self) -> None:
        _require_choice(self.adapters)


@dataclass(frozen=True, slots=True)
class SoftSettings:
    """Mixes all adapters. scores: of centroids or of a gate; temperature: they are divided by it."""

    kind: ClassVar[str] = "soft"
    adapters: tuple[str | None, ...]
    scores: Scores = "gate"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        _require_choice(self.adapters)
        if self.scores not in get_args(Scores):
            raise CheckpointError(f"scores is {self.scores!r}; it must be one of {list(get_args(Scores))}")
        is_number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        if not is_number or not 0 < self.temperature < float("inf"):
            raise CheckpointError(f"temperature is {self.temperature!r}; it must be a number above 0")


LearnedSettings = CentroidSettings | GateSettings | SoftSettings
RouterSettings = FixedSettings | LearnedSettings
KINDS: dict[str, type[RouterSettings]] = {
    kind.kind: kind for kind in (FixedSettings, CentroidSettings, GateSettings, SoftSettings)
}


@dataclass(frozen=True, slots=True)
class RouterBase:
    """The encoder whose dense vectors a router was learned on. fingerprint: that of its float form."""

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True, eq=False)
class Router:
    """A router. arrays: `centroids` float32[K, D], or `weight` float32[K, D] and `bias` float32[K].

    base: None for a fixed one, which depends on none. Raises CheckpointError where the arrays are not those
    that the settings need.
    """

    settings: RouterSettings
    base: RouterBase | None = None
    arrays: Mapping[str, Float32] = field(default_factory=dict)
    description: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.settings, FixedSettings) != (self.base is None):
            raise CheckpointError(
                f"a router of kind {self.kind} has {'no base' if self.base is None else 'a base'}"
            )
        expected = array_names(self.settings)
        if self.arrays.keys() != expected:
            raise CheckpointError(
                f"a router of kind {self.kind} has tensors {sorted(expected)}, not {sorted(self.arrays)}"
            )
        for name, array in self.arrays.items():
            rows = len(self.settings.adapters)
            if array.ndim != (1 if name == "bias" else 2) or len(array) != rows:
                raise CheckpointError(
                    f"{name} has shape {list(array.shape)}; it routes among {rows} adapters"
                )
            if array.dtype != np.float32 or not np.isfinite(array).all():
                raise CheckpointError(f"{name} must hold finite float32 numbers; learn the router again")
            if name == "centroids" and np.abs(np.linalg.norm(array, axis=1) - 1).max() > UNIT_TOLERANCE:
                raise CheckpointError("centroids must be unit vectors; learn the router again")

    @property
    def kind(self) -> str:
        """The kind of its settings."""
        return self.settings.kind

    @property
    def dimension(self) -> int | None:
        """Values of the vectors that it takes; None for a fixed one."""
        return next((array.shape[1] for name, array in self.arrays.items() if name != "bias"), None)

    @property
    def digest(self) -> str:
        """sha256 over what it computes; the adapters that it names are in it by name only."""
        settings = settings_json(self.settings)
        return json_digest({"kind": self.kind, "settings": settings, "tensors": arrays_digest(self.arrays)})

    def routes(self, dense: Float32) -> list[Route]:
        """What each text goes through. dense: float32[B, D], unit vectors by the base encoder.

        Hard routers choose one adapter, the first of those that tie; a soft one weighs all of them.
        """
        scores = self._scores(dense)
        adapters = self.settings.adapters
        if not isinstance(self.settings, SoftSettings):
            return [Route((adapters[best],), (1.0,)) for best in scores.argmax(1).tolist()]
        return [Route(adapters, tuple(row)) for row in softmax(scores / self.settings.temperature).tolist()]

    def _scores(self, dense: Float32) -> np.ndarray[Any, np.dtype[np.float64]]:
        """float64[B, K], so that the size of a batch moves no sum."""
        x = dense.astype(np.float64)
        if "centroids" in self.arrays:
            return np.asarray(x @ self.arrays["centroids"].T.astype(np.float64))
        return np.asarray(x @ self.arrays["weight"].T.astype(np.float64) + self.arrays["bias"])


def softmax(scores: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Weights of each row float64[B, K], summing to 1."""
    raised = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(raised / raised.sum(1, keepdims=True))


def array_names(settings: RouterSettings) -> set[str]:
    """The tensors of a router with these settings."""
    if isinstance(settings, FixedSettings):
        return set()
    scores = settings.scores if isinstance(settings, SoftSettings) else settings.kind
    return {"centroids"} if scores == "centroid" else {"weight", "bias"}


def router_settings(kind: object, values: Mapping[str, Any]) -> RouterSettings:
    """Settings of a kind of router from a JSON object. Raises as `settings_of_kind`."""
    return settings_of_kind(KINDS, kind, values)


def resolve(name: str, collection: str | None, fixed: Callable[[str], FixedSettings | None]) -> str | None:
    """The adapter or learned router that a name stands for; None is the base.

    name: possibly of a fixed router, and then possibly with a tag, as `by-language:ko`; collection: the
    one that is made or searched, if any; fixed: the settings of a name, None where it is no fixed router.
    Raises AdapterNotFoundError for a tag where none is taken.
    """
    plain, mark, tag = name.partition(TAG_MARK)
    settings = fixed(plain)
    if settings is None:
        if mark:
            raise AdapterNotFoundError(
                f"no fixed router {plain[:80]!r}, which alone could take the tag {tag[:80]!r}; "
                "leave the tag out, or name a router of kind fixed"
            )
        return name
    if mark:
        return settings.adapter_for(tag)
    return settings.adapter_for(collection if settings.by == "collection" else None)


def _require_adapter(name: object) -> None:
    if name is not None and not is_adapter_name(name):
        raise CheckpointError(f"{name!r} is no adapter's name; give one, or null for the base")


def _require_choice(adapters: object) -> None:
    names = adapters if isinstance(adapters, tuple) else ()
    for name in names:
        _require_adapter(name)
    if len(names) < 2 or len(set(names)) < len(names):
        raise CheckpointError(
            f"adapters is {adapters!r}; a router chooses among two or more, each named once"
        )
