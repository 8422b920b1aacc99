"""Encodes blocks of documents; of each comes a segment on the object store, which is a part of a shard."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tercet.cluster.building.blocks import documents_of
from tercet.cluster.objects.errors import DamagedObjectError
from tercet.cluster.objects.opening import open_store
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.work.executor import Worker
from tercet.cluster.work.records import once
from tercet.cluster.work.segments import send_segment
from tercet.index.candidates import Document
from tercet.index.catalog.manifest import Manifest, SegmentEntry, segment_of_record, segment_record
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.collection import Collection
from tercet.index.files.scratch import scratch_folder
from tercet.index.writer import SegmentLimits
from tercet.ingest.document_encoders import DocumentEncoder
from tercet.ingest.document_windows import cutter_for
from tercet.ingest.encoded import EncodedDocuments
from tercet.ingest.encoder_match import require_encoder

BLOCKS, PARTS = "blocks", "parts"
ONE_SEGMENT = SegmentLimits(sys.maxsize, sys.maxsize, sys.maxsize)


@dataclass(frozen=True, slots=True)
class Part:
    """The segment of one block, and of its texts how many tokens they have and how many were cut."""

    block: str
    segment: SegmentEntry
    tokens: int
    truncated: int

    @property
    def content(self) -> bytes:
        """The bytes of its record."""
        values = {name: getattr(self, name) for name in ("block", "tokens", "truncated")}
        return json.dumps({**values, "segment": segment_record(self.segment)}).encode()

    @staticmethod
    def of_content(content: bytes) -> Part:
        """Raises DamagedIndexError for another record."""
        record: dict[str, Any] = json.loads(content)
        segment = segment_of_record(Record.of(record["segment"], Path(part_path(record["block"]))))
        return Part(record["block"], segment, record["tokens"], record["truncated"])


def block_path(name: str) -> str:
    """Where a block lies until the build is published."""
    return f"{BLOCKS}/{name}"


def part_path(name: str) -> str:
    """Where the record of a block's part lies."""
    return f"{PARTS}/{name}.json"


@dataclass(frozen=True, slots=True)
class Encoding:
    """The work of encoding blocks, each named by its piece.

    url: of the build's folder; open_encoder: the encoder of the settings, which is opened once in a process.
    """

    url: str
    settings: CollectionSettings
    open_encoder: Callable[[], DocumentEncoder]

    @property
    def encodes(self) -> bool:
        return True

    def begin(self) -> Worker:
        """Raises FingerprintMismatchError where the encoder is another than that of the settings."""
        return BlockEncoder(open_store(self.url), self.settings, self.open_encoder())


class BlockEncoder:
    """Encodes one block after the other."""

    def __init__(self, store: ObjectStore, settings: CollectionSettings, encoder: DocumentEncoder) -> None:
        encoder.use_adapter(settings.adapter)
        require_encoder(settings, encoder.info)
        self._store = store
        self._settings = replace(settings, dense_kind="flat")  # graphs are built once all is known
        self._encoder = encoder
        self._cutter = cutter_for(settings, encoder.tokenizer)

    def __call__(self, block: str) -> Part:
        """The part of a block."""
        return Part.of_content(once(self._store, part_path(block), lambda: self._encoded(block).content))

    def _encoded(self, block: str) -> Part:
        content = self._store.get(block_path(block))
        if hashlib.sha256(content).hexdigest() != block:
            raise DamagedObjectError(
                f"{self._store.url}/{block_path(block)} was altered; remove it, and build again"
            )
        with scratch_folder() as folder:
            return self._written(folder, block, documents_of(content))

    def _written(self, folder: Path, block: str, documents: Iterable[Document]) -> Part:
        """Encodes documents into a segment, and uploads that."""
        collection = Collection.create(folder, self._settings.name, self._settings)
        with collection.writer(ONE_SEGMENT) as writer:
            done = EncodedDocuments(self._encoder, self._cutter, writer)
            done.write(documents)
            name = writer.publish()
        (segment,) = Manifest.read(collection.layout.manifest(name)).segments
        send_segment(self._store, collection.layout.segment(segment.id), segment)
        return Part(block, segment, done.tokens, done.truncated)
