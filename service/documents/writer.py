"""Writes documents: what a request asks for is checked, encoded, and handed to the collection.

A request is refused before its encoding wherever that can be told. One whose client leaves is dropped while
it waits for the encoder; once its write has begun, that is finished.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.checked import CheckedDocuments
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.store import encode_id
from tercet.index.errors import (
    DocumentNotFoundError,
    DuplicateDocumentError,
    FingerprintMismatchError,
    InvalidDocumentError,
    SearchIndexError,
    WriteOverloadedError,
)
from tercet.index.live.records import WriteKey
from tercet.service.collections.positions import Position
from tercet.service.collections.target import Acknowledged, WritableCollections
from tercet.service.documents.batch import EncodedDocuments, ReadyDocuments, joined
from tercet.service.documents.encoding import encode_documents
from tercet.service.documents.write_telemetry import WriteKind, WriteTelemetry
from tercet.service.encoding.shelf import EncoderShelf
from tercet.service.exceptions import InvalidRequestError, OverloadedError, ServiceError
from tercet.service.load.deadlines import NO_DEADLINE, Deadline
from tercet.service.load.pools import Pools
from tercet.service.tracing.facts import note
from tercet.service.tracing.request import recorded

RETRY_SECONDS = 1.0  # a flush of what fills the memory takes about so long


@dataclass(frozen=True, slots=True)
class DocumentBatch:
    """Documents to put, at least one. ready: the representations that some of them came with; declares:
    fields of theirs, which the collection gets as far as it can where it has none of these names.
    """

    documents: Sequence[Document]
    ready: ReadyDocuments | None = None
    if_position: Position | None = None
    key: WriteKey | None = None
    declares: Mapping[str, FieldType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PutOutcome:
    """What was acknowledged, and how many documents were cut when they were encoded: 0 for a repeat."""

    written: Acknowledged
    truncated: int = 0


class DocumentWriter:
    """Writes to the collections of a server. Use from one event loop."""

    def __init__(
        self,
        collections: WritableCollections,
        encoders: EncoderShelf,
        pools: Pools,
        telemetry: WriteTelemetry,
        *,
        write_tokens: int,
    ) -> None:
        self._collections = collections
        self._encoders = encoders
        self._pools = pools
        self._telemetry = telemetry
        self._write_tokens = write_tokens

    async def put(self, name: str, batch: DocumentBatch, deadline: Deadline) -> PutOutcome:
        """Adds or replaces documents, all or none.

        deadline: for the encoding to begin, and for answers of shards.
        Raises InvalidRequestError or InvalidDocumentError for the first document at fault,
        FingerprintMismatchError, DocumentChangedError, what the encoder raises, and what opening a collection
        and writing to it raise.
        """
        settings = await self._collections.open_to_write(name, deadline)
        if batch.key is not None:
            written = await self._written_under(settings.name, batch.key, deadline)
            if written is not None:
                return PutOutcome(written)
        if_position = self._position(batch.if_position)
        checked = await self._pools.bodies.run(_checked, batch.documents, settings)
        encoded = await self._encoded(batch, settings, deadline)
        tokens, cut = encoded.representations.tokens, encoded.representations.truncated

        def put() -> Acknowledged:
            with self._collections.writing(settings.name, deadline) as live:
                if not batch.declares.keys() <= live.settings.fields.keys():
                    with suppress(SearchIndexError, ServiceError):  # the next put tries again
                        live.declare(batch.declares)
                written = live.put(
                    checked,
                    encoded.representations,
                    encoded.windows(settings),
                    if_position=if_position,
                    key=batch.key,
                    tokens=int(tokens.sum()),
                )
            return self._counted("put", written)

        with _write_to(settings.name):
            written = _noted(await self._pools.writes.run(put))
        return PutOutcome(written, int(np.count_nonzero(cut)))

    async def delete(
        self,
        name: str,
        which: Sequence[str] | Filter,
        key: WriteKey | None,
        deadline: Deadline = NO_DEADLINE,
        partition: str | None = None,
    ) -> Acknowledged:
        """Removes documents of these ids, as far as they are in a partition where one is given, or those that
        a filter allows. Ids that are not there, or that no document can have, count nothing. Raises
        InvalidQueryError.
        """
        settings = await self._collections.open_to_write(name, deadline)

        def delete() -> Acknowledged:
            with self._collections.writing(settings.name, deadline) as live:
                if isinstance(which, Filter):
                    written = live.delete_matching(which, key=key)
                else:
                    written = live.delete([id for id in which if is_id(id)], partition=partition, key=key)
            return self._counted("delete", written)

        with _write_to(settings.name):
            return _noted(await self._pools.writes.run(delete))

    async def update(
        self,
        name: str,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        key: WriteKey | None,
        deadline: Deadline = NO_DEADLINE,
        partition: str | None = None,
        *,
        merge: bool,
    ) -> Acknowledged:
        """Changes the metadata of documents of these ids, as far as they are in a partition, or
        of those that a filter allows. Ids that are not there, or that no document can have, count nothing.
        Raises InvalidQueryError or InvalidDocumentError.
        """
        if not isinstance(which, Filter):
            which = [id for id in which if is_id(id)]
        settings = await self._collections.open_to_write(name, deadline)

        def update() -> Acknowledged:
            with self._collections.writing(settings.name, deadline) as live:
                written = live.update(which, metadata, merge=merge, partition=partition, key=key)
            return self._counted("patch", written)

        with _write_to(settings.name):
            return _noted(await self._pools.writes.run(update))

    async def patch(
        self,
        name: str,
        id: str,
        metadata: Mapping[str, Any],
        if_position: Position | None,
        key: WriteKey | None,
        deadline: Deadline = NO_DEADLINE,
        *,
        merge: bool = False,
    ) -> Acknowledged:
        """Replaces a document's metadata, or merges this into it.

        Raises DocumentNotFoundError, DocumentChangedError or InvalidDocumentError.
        """
        if not is_id(id):
            raise DocumentNotFoundError(f"document {id!r:.80} is not in collection {name!r}")
        position = self._position(if_position)
        settings = await self._collections.open_to_write(name, deadline)

        def patch() -> Acknowledged:
            with self._collections.writing(settings.name, deadline) as live:
                written = live.patch(id, metadata, merge=merge, if_position=position, key=key)
            return self._counted("patch", written)

        with _write_to(settings.name):
            return _noted(await self._pools.writes.run(patch))

    def _position(self, given: Position | None) -> Any:
        return None if given is None else self._collections.position_of(given, "if_position")

    async def _written_under(self, name: str, key: WriteKey, deadline: Deadline) -> Acknowledged | None:
        """What was answered to the same request, if anything, before any of its work is done again."""

        def look() -> Acknowledged | None:
            with self._collections.writing(name, deadline) as live:
                return live.written_under(key)

        return await self._pools.writes.run(look)

    async def _encoded(
        self, batch: DocumentBatch, settings: CollectionSettings, deadline: Deadline
    ) -> EncodedDocuments:
        """Representations of all documents: ready ones as they came, and the others encoded."""
        parts: list[EncodedDocuments] = []
        left = np.ones(len(batch.documents), np.bool_)
        if batch.ready is not None:
            _require_fingerprints(batch.ready.fingerprints, settings)
            left[batch.ready.positions] = False
            parts.append(await self._pools.bodies.run(batch.ready.encoded, batch.documents, settings))
        if left.any():
            encoding = await self._encoders.of_collection(settings)
            started = time.perf_counter()
            parts.append(
                await encode_documents(
                    batch.documents,
                    np.flatnonzero(left),
                    settings,
                    encoding,
                    self._pools.bodies,
                    write_tokens=self._write_tokens,
                    deadline=deadline,
                )
            )
            self._telemetry.encoded(time.perf_counter() - started)
        return joined(parts)

    def _counted(self, kind: WriteKind, written: Acknowledged) -> Acknowledged:
        """What was acknowledged, counted in the thread that wrote it: its client may have left."""
        self._telemetry.acknowledged(kind, written.documents)
        return written


@contextmanager
def _write_to(name: str) -> Iterator[None]:
    """Within it a request waits for its write to a collection. Raises OverloadedError where that is refused
    because memory is full.
    """
    note(collection=name)
    try:
        with recorded("write"):
            yield
    except WriteOverloadedError as error:
        raise OverloadedError(str(error), RETRY_SECONDS, "writes") from error


def _noted(written: Acknowledged) -> Acknowledged:
    note(documents=written.documents, position=written.position)
    return written


def _checked(documents: Sequence[Document], settings: CollectionSettings) -> CheckedDocuments:
    """Raises InvalidRequestError for the first document that breaks a limit or a declared field's type, or
    that has the id of another.
    """
    try:
        return CheckedDocuments.of(
            documents, settings.fields, distinct=True, partitioned=settings.partitioned
        )
    except DuplicateDocumentError as error:
        raise InvalidRequestError(str(error), f"documents.{error.index}.id", "duplicate_document") from error
    except InvalidDocumentError as error:
        raise _about_document(error, error.index) from error


@contextmanager
def about_document(position: int) -> Iterator[None]:
    """Names the position of a document in its batch in the errors about it."""
    try:
        yield
    except InvalidDocumentError as error:
        raise _about_document(error, position) from error


def _about_document(error: InvalidDocumentError, position: int | None) -> InvalidRequestError:
    param = ".".join(filter(None, ("documents", str(position), error.part)))
    return InvalidRequestError(str(error), param, "invalid_document")


def _require_fingerprints(fingerprints: Sequence[str], settings: CollectionSettings) -> None:
    for fingerprint in fingerprints:
        if fingerprint != settings.fingerprint:
            raise FingerprintMismatchError(
                f"collection {settings.name!r} holds representations of fingerprint {settings.fingerprint}, "
                f"and some of {fingerprint[:80]!r} are given: encode with {settings.encoder}, or give none"
            )


def is_id(id: str) -> bool:
    """Whether a document can have this id."""
    try:
        encode_id(id)
    except InvalidDocumentError:
        return False
    return True
