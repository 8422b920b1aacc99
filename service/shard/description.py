"""What a shard says of a collection: its settings, what searches use by default, and its languages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.effort import DenseEffort
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.languages.sample import NO_LANGUAGES, LanguageSample
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
    languages: LanguageSample = NO_LANGUAGES

    @staticmethod
    def of(
        settings: CollectionSettings,
        defaults: SearchDefaults | None,
        effort: DenseEffort | None,
        languages: LanguageSample = NO_LANGUAGES,
    ) -> ShardDescription:
        """With the tag that these have, whatever the languages: those change with the documents. Copies have
        one tag, whatever positions each has lost.
        """
        lineage = settings.lineage
        named = None if lineage is None else Lineage(lineage.id, part=lineage.part)
        record = settings_record(replace(settings, lineage=named))
        said = encode(Description(record, None, defaults, effort, "", NO_LANGUAGES))
        tag = hashlib.sha256(said).hexdigest()[:TAG_DIGITS]
        return ShardDescription(settings, defaults, effort, tag, languages)

    @staticmethod
    def read(body: bytes, shard: str) -> ShardDescription:
        """That of a message from a shard. Raises ValueError and its like, or SearchIndexError."""
        description = decode(Description, body)
        settings = settings_from(description.settings, description.codebook, shard)
        return ShardDescription(
            settings, description.defaults, description.effort, description.tag, description.languages
        )

    @property
    def message(self) -> bytes:
        """The body of it."""
        codebook = self.settings.codebook
        content = None if codebook is None else codebook.content
        settings = settings_record(self.settings)
        return encode(Description(settings, content, self.defaults, self.effort, self.tag, self.languages))
