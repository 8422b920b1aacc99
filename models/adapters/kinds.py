"""All kinds of adapters, and their settings as JSON, in `adapter.json` and in digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar, get_args

from tercet.models.adapters.compound_settings import HypernetworkSettings, UnipeltSettings
from tercet.models.adapters.settings import (
    BiasSettings,
    BottleneckSettings,
    FusionSettings,
    Ia3Settings,
    LoraSettings,
    MixAndMatchSettings,
    PrefixSettings,
    PromptSettings,
    SparseSettings,
    StackSettings,
)
from tercet.models.errors import CheckpointError

Settings = TypeVar("Settings")

# What `feed_forward` is called in digests, and in some adapters on disk. Digests are parts of fingerprints,
# which collections keep.
FEED_FORWARD_ON_DISK = "pfeiffer"
AdapterSettings = (
    LoraSettings
    | Ia3Settings
    | BiasSettings
    | SparseSettings
    | PrefixSettings
    | PromptSettings
    | BottleneckSettings
    | MixAndMatchSettings
    | UnipeltSettings
    | HypernetworkSettings
    | FusionSettings
    | StackSettings
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
    """All settings as digests have them. A factor of 1 is left out, as none had another once."""
    digested = settings_json(settings)
    if digested.get("placement") == "feed_forward":
        digested["placement"] = FEED_FORWARD_ON_DISK
    if digested.get("scale") == 1.0:
        del digested["scale"]
    return digested
