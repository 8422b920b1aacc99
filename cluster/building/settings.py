"""The settings of a collection that is built in shards: one codebook, from a sample of all documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tercet.cluster.building.blocks import BLOCK_BYTES, BLOCK_DOCUMENTS
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionExistsError
from tercet.index.token_codecs import TokenCodec
from tercet.ingest.codebook import codec_settings
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import cutter_for
from tercet.ingest.encoder_match import adapter_of
from tercet.ingest.passages.split import SOURCE_FIELD
from tercet.ingest.progress import Phase
from tercet.ingest.representation_cache import RepresentationCache
from tercet.ingest.sources.checks import OnError
from tercet.ingest.sources.files import Source, holds_texts, paths_of, source_files
from tercet.ingest.sources.reading import USUAL_READING, Reading
from tercet.ingest.target import RequestedSettings, chosen, require_settings, settings_for

FORMAT = 2


@dataclass(frozen=True, slots=True)
class ShardedBuild:
    """What is to be built: a collection of this name, of a source's documents, in so many shards.

    asked: what is chosen for a new collection but its token_codec. adapter, on_error, reading, guessed: as of
    `build_collection`.
    """

    name: str
    source: Source
    shards: int
    asked: RequestedSettings = field(default_factory=RequestedSettings)
    token_codec: TokenCodec | None = None
    adapter: str | None = None
    on_error: OnError = "stop"
    reading: Reading = USUAL_READING
    guessed: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The files that are read. Raises SourceError."""
        return [file for path in paths_of(self.source) for file in source_files(path, self.reading.format)]

    def key(self, encoder: DocumentEncoder, present: CollectionSettings | None) -> str:
        """By what the pieces of this build are known, when it is begun again. present: the settings that the
        collection keeps, if it is there.
        """
        described = {
            "format": FORMAT,
            "name": self.name,
            "files": [(path.name, path.stat().st_size) for path in self.files],
            "shards": self.shards,
            "asked": sorted((name, repr(value)) for name, value in self.asked.items()),
            "token_codec": self.token_codec,
            "on_error": self.on_error,
            "reading": repr(self.reading),
            "encoder": encoder.info.fingerprint,
            "present": None if present is None else present.of_new_collection(self.name).sha256,
            "blocks": (BLOCK_DOCUMENTS, BLOCK_BYTES),
        }
        return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def new_settings(
    build: ShardedBuild, encoder: DocumentEncoder, learning: Callable[[Phase, float], None]
) -> CollectionSettings:
    """Those of a collection that is not there yet. learning: as for `codec_settings`.

    Raises as `build_collection` for what does not hold, before anything is encoded.
    """
    asked = chosen({**build.asked, "fields": _fields(build)})
    cutter = cutter_for(settings_for(build.name, encoder.info, asked), encoder.tokenizer)
    nothing_kept = RepresentationCache(0)  # what is encoded here is encoded again by another process
    codec = codec_settings(
        encoder,
        cutter,
        build.source,
        build.token_codec,
        build.on_error,
        build.reading,
        nothing_kept,
        learning,
    )
    return settings_for(build.name, encoder.info, {**asked, **codec})


def use_adapter(build: ShardedBuild, encoder: DocumentEncoder, present: CollectionSettings | None) -> None:
    """Has the encoder go with the adapter of the collection. Raises FingerprintMismatchError."""
    check_collection_name(build.name)
    found = None if build.adapter is None else encoder.resolve_adapter(build.adapter, build.name)
    encoder.use_adapter(found if present is None else adapter_of(present, build.adapter, found))


def kept_settings(
    build: ShardedBuild, encoder: DocumentEncoder, present: CollectionSettings
) -> CollectionSettings:
    """Those of the collection that is there, which stay.

    Raises CollectionExistsError where others are asked for, FingerprintMismatchError for another encoder.
    """
    if present.name != build.name:
        raise CollectionExistsError(
            f"there is collection {present.name!r}, and {build.name!r} is to be built: use another URL"
        )
    codec = {} if build.token_codec is None else {"token_codec": build.token_codec}
    require_settings(present, encoder.info, {**chosen(build.asked), **codec})
    return present


def _fields(build: ShardedBuild) -> Mapping[str, Any] | None:
    """The fields of a new collection: passages and files of text have that of their source, too."""
    fields: Mapping[str, Any] | None = build.asked.get("fields")
    if build.reading.split is not None or any(map(holds_texts, build.files)):
        return {**SOURCE_FIELD, **(fields or {})}
    return fields
