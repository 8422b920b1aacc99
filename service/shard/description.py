"""What a shard says of a collection, as a message: its settings, and what searches use by default."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import orjson

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.settings import CollectionSettings
from tercet.service.answers.collection_settings import (
    defaults_from,
    defaults_record,
    settings_from,
    settings_record,
)
from tercet.service.shard.messages import Message, message

TAG_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ShardDescription:
    """Settings, defaults and effort of a collection, and their tag: what another text would be for others."""

    settings: CollectionSettings
    defaults: SearchDefaults | None
    effort: DenseEffort | None
    tag: str


def tag_of(settings: CollectionSettings, defaults: SearchDefaults | None, effort: DenseEffort | None) -> str:
    """The tag of a description."""
    return hashlib.sha256(orjson.dumps(_values(settings, defaults, effort))).hexdigest()[:TAG_DIGITS]


def description_message(
    settings: CollectionSettings, defaults: SearchDefaults | None, effort: DenseEffort | None
) -> bytes:
    """The body of a description."""
    codebook = settings.codebook
    return message(
        {**_values(settings, defaults, effort), "tag": tag_of(settings, defaults, effort)},
        {"codebook": None if codebook is None else np.frombuffer(codebook.content, np.uint8)},
    )


def description_of(found: Message, shard: str) -> ShardDescription:
    """The description of a message from a shard. Raises ValueError and its like, or SearchIndexError."""
    values, codebook = found.values, None
    if "codebook" in found.arrays:
        codebook = found.array("codebook", np.uint8, None).tobytes()
    return ShardDescription(
        settings_from(values, codebook, shard),
        defaults_from(values["defaults"]),
        None if values["effort"] is None else DenseEffort(**values["effort"]),
        str(values["tag"]),
    )


def _values(
    settings: CollectionSettings, defaults: SearchDefaults | None, effort: DenseEffort | None
) -> dict[str, Any]:
    return {
        **settings_record(settings),
        "defaults": defaults_record(defaults),
        "effort": None if effort is None else asdict(effort),
    }
