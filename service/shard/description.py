"""What a shard says of a collection: its settings, and what searches use by default."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.settings import CollectionSettings
from tercet.service.answers.collection_settings import settings_from, settings_record
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.records import Description

TAG_DIGITS = 16


@dataclass(frozen=True, slots=True)
class ShardDescription:
    """Settings, defaults and effort of a collection, and their tag: what another text would be for others."""

    settings: CollectionSettings
    defaults: SearchDefaults | None
    effort: DenseEffort | None
    tag: str

    @staticmethod
    def of(
        settings: CollectionSettings, defaults: SearchDefaults | None, effort: DenseEffort | None
    ) -> ShardDescription:
        """With the tag that these have."""
        said = encode(Description(settings_record(settings), None, defaults, effort, ""))
        return ShardDescription(settings, defaults, effort, hashlib.sha256(said).hexdigest()[:TAG_DIGITS])

    @staticmethod
    def read(body: bytes, shard: str) -> ShardDescription:
        """That of a message from a shard. Raises ValueError and its like, or SearchIndexError."""
        description = decode(Description, body)
        settings = settings_from(description.settings, description.codebook, shard)
        return ShardDescription(settings, description.defaults, description.effort, description.tag)

    @property
    def message(self) -> bytes:
        """The body of it."""
        codebook = self.settings.codebook
        content = None if codebook is None else codebook.content
        return encode(
            Description(settings_record(self.settings), content, self.defaults, self.effort, self.tag)
        )
