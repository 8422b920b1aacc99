"""What a router is: how it finds the adapters that a text goes through.

With x the unit dense vector of a text by the base encoder, and one score for each adapter it routes among
(Pfeiffer et al. 2023, arXiv 2302.11529, section 4):

fixed     a table from a tag, such as a language, to an adapter, and possibly one from a second tag to another
          adapter on top of it; the text plays no part
centroid  the nearest of K unit vectors c_k, that is the largest c_k·x
gate      the largest of a linear layer, w_k·x + b_k
soft      all of them, or those with the k largest scores, each by its weight in softmax(scores / temperature)
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tercet.models.adapters.kinds import settings_json, settings_of_kind
from tercet.models.adapters.settings import PAIR_MARK, is_adapter_name
from tercet.models.errors import AdapterNotFoundError, CheckpointError
from tercet.models.fingerprint import arrays_digest, json_digest
from tercet.models.representations import Float32, Route

TagKind = Literal["language", "domain", "collection"]
Scores = Literal["centroid", "gate"]
# What stands before each of the tags that are given with a fixed router's name.
TAG_MARK = ":"
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
UNIT_TOLERANCE = 1e-3
# Of settings that routers on disk may lack.
LATER_KEYS = ("top", "upper")


@dataclass(frozen=True, slots=True)
class FixedSettings:
    """A table from a tag to an adapter. by: what tags are, and with `collection` what they are by default.

    default: the adapter for any other tag, and for none. None is the base everywhere. upper: the same for a
    second tag, whose adapter lies on that of the first.
    """

    kind: ClassVar[str] = "fixed"
    by: TagKind
    table: Mapping[str, str | None]
    default: str | None = None
    upper: FixedSettings | None = None

    def __post_init__(self) -> None:
        # Known before what is in it is read: its own upper may have one, and so on.
        if isinstance(self.upper, Mapping) and self.upper.get("upper") is None:
            object.__setattr__(
                self, "upper", settings_of_kind({self.kind: FixedSettings}, self.kind, self.upper)
            )
        if self.upper is not None and (
            not isinstance(self.upper, FixedSettings)
            or self.upper.upper is not None
            or self.upper.by == self.by
        ):
            raise CheckpointError(
                f"upper is {reprlib.repr(self.upper)}; it must have a table by another kind of tag, and no "
                "upper"
            )
        if self.by not in get_args(TagKind):
            raise CheckpointError(f"by is {self.by!r}; it must be one of {list(get_args(TagKind))}")
        if not isinstance(self.table, Mapping) or not all(TAG.fullmatch(tag) for tag in self.table):
            raise CheckpointError(f"table is {self.table!r}; its keys must match {TAG.pattern}")
        for name in self.adapters:
            _require_adapter(name)

    @property
    def adapters(self) -> tuple[str | None, ...]:
        """All that its tables name, each once."""
        upper = () if self.upper is None else self.upper.adapters
        return tuple(dict.fromkeys([*self.table.values(), self.default, *upper]))

    @property
    def pairs(self) -> tuple[str, ...]:
        """What it can choose of two adapters, each as the name of a pair."""
        upper = () if self.upper is None else self.upper.adapters
        own = dict.fromkeys([*self.table.values(), self.default])
        named = (_pair(lower, name) for lower in own for name in upper)
        return tuple(name for name in named if name is not None and PAIR_MARK in name)

    def adapter_for(self, tags: Sequence[str], collection: str | None = None) -> str | None:
        """The adapter of up to as many tags as there are tables, or the pair of two adapters.

        collection: the tag where none is given and tags are collections.
        """
        tag = tags[0] if tags else collection if self.by == "collection" else None
        own = self.default if tag is None else self.table.get(tag, self.default)
        return own if self.upper is None else _pair(own, self.upper.adapter_for(tags[1:], collection))


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
    """Mixes adapters. scores: of centroids or of a gate; temperature: they are divided by it.

    top: how many of the largest scores are mixed, the softmax over these alone; None for all of them.
    """

    kind: ClassVar[str] = "soft"
    adapters: tuple[str | None, ...]
    scores: Scores = "gate"
    temperature: float = 1.0
    top: int | None = None

    def __post_init__(self) -> None:
        _require_choice(self.adapters)
        if self.scores not in get_args(Scores):
            raise CheckpointError(f"scores is {self.scores!r}; it must be one of {list(get_args(Scores))}")
        is_number = isinstance(self.temperature, int | float) and not isinstance(self.temperature, bool)
        if not is_number or not 0 < self.temperature < float("inf"):
            raise CheckpointError(f"temperature is {self.temperature!r}; it must be a number above 0")
        is_count = isinstance(self.top, int) and not isinstance(self.top, bool)
        if self.top is not None and not (is_count and 2 <= self.top <= len(self.adapters)):
            raise CheckpointError(
                f"top is {self.top!r}; it must be a number from 2 to that of the adapters, "
                f"{len(self.adapters)}: a router of kind gate or centroid takes one"
            )


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
        settings = router_json(self.settings)
        return json_digest({"kind": self.kind, "settings": settings, "tensors": arrays_digest(self.arrays)})

    def routes(self, dense: Float32) -> list[Route]:
        """What each text goes through. dense: float32[B, D], unit vectors by the base encoder.

        Hard routers choose one adapter, the first of those that tie; a soft one weighs several, in order.
        """
        scores = self._scores(dense)
        adapters, settings = self.settings.adapters, self.settings
        if not isinstance(settings, SoftSettings):
            return [Route((adapters[best],), (1.0,)) for best in scores.argmax(1).tolist()]
        chosen = np.sort((-scores).argsort(1, kind="stable")[:, : settings.top], axis=1)
        weights = softmax(np.take_along_axis(scores, chosen, 1) / settings.temperature)
        return [
            Route(tuple(adapters[column] for column in columns), tuple(row))
            for columns, row in zip(chosen.tolist(), weights.tolist(), strict=True)
        ]

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


def router_json(settings: RouterSettings) -> dict[str, Any]:
    """All settings of a router as a JSON object, without `top` and `upper` where they are None.

    Routers were written without them, and digests are parts of fingerprints, which collections keep.
    """
    values = settings_json(settings)
    if isinstance(settings, FixedSettings) and settings.upper is not None:
        values["upper"] = router_json(settings.upper)
    return {key: value for key, value in values.items() if key not in LATER_KEYS or value is not None}


def router_settings(kind: object, values: Mapping[str, Any]) -> RouterSettings:
    """Settings of a kind of router from a JSON object. Raises as `settings_of_kind`."""
    return settings_of_kind(KINDS, kind, values)


def resolve(name: str, collection: str | None, fixed: Callable[[str], FixedSettings | None]) -> str | None:
    """The adapter, pair of adapters or learned router that a name stands for; None is the base.

    name: possibly of a fixed router, and then possibly with tags, as `by-language:ko`; collection: the
    one that is made or searched, if any; fixed: the settings of a name, None where it is no fixed router.
    Raises AdapterNotFoundError for a tag where none is taken.
    """
    plain, *tags = name.split(TAG_MARK)
    settings = fixed(plain)
    if settings is None:
        if tags:
            raise AdapterNotFoundError(
                f"no fixed router {plain[:80]!r}, which alone could take the tag {tags[0][:80]!r}; "
                "leave the tag out, or name a router of kind fixed"
            )
        return name
    most = 1 if settings.upper is None else 2
    if len(tags) > most:
        taken = "one tag" if most == 1 else "two tags"
        raise AdapterNotFoundError(f"router {plain[:80]!r} takes {taken}; leave {tags[most][:80]!r} out")
    return settings.adapter_for(tags, collection)


def _pair(lower: str | None, upper: str | None) -> str | None:
    """The name of one adapter on top of another; of either alone where the other is the base, or the same."""
    names = dict.fromkeys(name for name in (lower, upper) if name is not None)
    return PAIR_MARK.join(names) or None


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
