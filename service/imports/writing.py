"""Reads a file that a client sent and writes its documents in groups, each on the disk before the next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from tercet.index.candidates import Document
from tercet.index.documents.store import decode_document, encode_document
from tercet.index.errors import (
    DuplicateDocumentError,
    InvalidDocumentError,
    PartitionConflictError,
    WriteTooLargeError,
)
from tercet.ingest.document_bytes import document_bytes
from tercet.ingest.errors import SourceError
from tercet.ingest.passages.former import NewPassages
from tercet.ingest.sources.checks import LISTED_SKIPS, OnError
from tercet.ingest.sources.reader import DocumentReader
from tercet.models.errors import TextTooLongError
from tercet.service.collections.served import Reads
from tercet.service.documents.writer import DocumentBatch, DocumentWriter
from tercet.service.exceptions import InvalidRequestError, OverloadedError, RequestTooLargeError
from tercet.service.imports.received_file import ReceivedFile
from tercet.service.load.deadlines import within
from tercet.service.load.pools import Pool
from tercet.service.load.reading import Reading
from tercet.service.settings.settings import RequestLimits

GROUP_DOCUMENTS = 64
GROUP_BYTES = 400_000
TRIES = 20  # where too much other work waits
# What may be wrong with one document of a group.
REFUSALS = (
    InvalidRequestError,
    InvalidDocumentError,
    PartitionConflictError,
    RequestTooLargeError,
    TextTooLongError,
    WriteTooLargeError,
)


class DocumentImport:
    """The documents of one file on their way into a collection."""

    def __init__(
        self,
        name: str,
        reader: DocumentReader,
        file: ReceivedFile,
        writer: DocumentWriter,
        readable: Reads,
        pool: Pool,
        limits: RequestLimits,
        *,
        on_error: OnError,
        cuts: bool,
        timeout_seconds: float,
    ) -> None:
        """name: the collection's; pool: where the file is read; cuts: whether documents come as passages,
        which replace all former ones; timeout_seconds: of the write of a group.
        """
        self._name = name
        self._reader = reader
        self._iterator = iter(reader)
        self._reading = threading.Lock()
        self._file = file
        self._writer = writer
        self._readable = readable
        self._passages = NewPassages() if cuts else None
        self._pool = pool
        self._limits = limits
        self._on_error = on_error
        self._timeout_seconds = timeout_seconds
        self._documents = 0
        self._refused: list[str] = []
        self._refused_count = 0
        self._position: int | str | None = None

    async def progress(self) -> AsyncGenerator[dict[str, Any]]:
        """What is done, after each group; the last with `done` and why records were skipped.

        Raises SourceError or DuplicateDocumentError for what cannot be read, what the first bad document
        raises unless those are skipped, and what the writer raises.
        """
        try:
            while group := await self._pool.run(self._next_group):
                await self._put(group)
                yield self._done()
        except (SourceError, DuplicateDocumentError) as error:
            raise type(error)(self._file.said(error)) from error
        if not self._documents:
            first = self._refused[:1]
            if first:
                raise SourceError(f"no documents; nothing was written. The first: {first[0]}")
            raise SourceError(self._file.said(self._reader.no_documents()))
        if self._passages is not None:
            await self._remove_former(self._passages)
        reasons = [*(self._file.said(skip) for skip in self._reader.skips), *self._refused]
        yield {**self._done(), "fraction": 1.0, "done": True, "reasons": reasons}

    def close(self) -> None:
        """Ends the reading, once what a thread reads is read."""
        with self._reading:
            self._iterator.close()

    def _done(self) -> dict[str, Any]:
        return {
            "documents": self._documents,
            "skipped": self._reader.skipped + self._refused_count,
            "position": self._position,
            "fraction": round(self._reader.fraction, 4),
        }

    def _next_group(self) -> list[Document]:
        with self._reading:
            group = _group(self._iterator)
        if self._passages is not None:
            for document in group:
                self._passages.add(document.id, document.metadata)
        return group

    async def _remove_former(self, passages: NewPassages) -> None:
        """Deletes what former versions of the documents had, once all of the new ones is there."""
        deadline = within(self._timeout_seconds)
        snapshot = await self._readable.open(self._name, Reading(deadline, newest=True))

        def page(after: str, limit: int) -> list[tuple[str, Mapping[str, Any]]]:
            return [(document.id, document.metadata) for document in snapshot.page(after, limit)]

        former = await self._pool.run(passages.former, page)
        if former:
            self._position = (await self._writer.delete(self._name, former, None, deadline)).position

    async def _put(self, group: Sequence[Document]) -> None:
        """Writes a group; one that is refused in halves, until those that are to blame are alone."""
        try:
            self._require_short(group)
            await self._written(group)
        except REFUSALS as error:
            if len(group) > 1:
                half = len(group) // 2
                await self._put(group[:half])
                await self._put(group[half:])
                return
            reason = f"document {group[0].id!r:.200}: {error}"
            if self._on_error == "stop":
                raise SourceError(f"{reason}. Correct it, or skip bad records (on_error=skip).") from error
            self._refused_count += 1
            if len(self._refused) < LISTED_SKIPS:
                self._refused.append(reason)

    async def _written(self, group: Sequence[Document]) -> None:
        """Writes a group, later where the server is busy. Raises as `DocumentWriter.put`."""
        tries = 1
        while True:
            try:
                outcome = await self._writer.put(
                    self._name, DocumentBatch(group), within(self._timeout_seconds)
                )
                break
            except OverloadedError as error:
                if tries == TRIES:
                    raise
                tries += 1
                await asyncio.sleep(error.retry_after_seconds)
        self._documents += outcome.written.documents
        self._position = outcome.written.position

    def _require_short(self, group: Sequence[Document]) -> None:
        limit = self._limits.characters
        for document in group:
            longest = max(len(document.text), len(document.title or ""))
            if longest > limit:
                raise InvalidRequestError(
                    f"it has {longest} characters; the limit is {limit} (setting max_characters): cut it "
                    "into passages with split"
                )


def _group(documents: Iterator[Document]) -> list[Document]:
    """The next documents, as they are stored: half a character in a text is replaced."""
    group, size = list[Document](), 0
    for document in documents:
        group.append(decode_document(document.id, encode_document(document)[1]))
        size += document_bytes(document)
        if len(group) == GROUP_DOCUMENTS or size >= GROUP_BYTES:
            break
    return group
