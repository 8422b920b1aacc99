"""Builds a new snapshot of a collection beside the current one and publishes it in one step."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType

import numpy as np

from tercet.index.bm25.analysis import Analyzer
from tercet.index.candidates import Document
from tercet.index.catalog.fence import Fence
from tercet.index.catalog.layout import FIRST_MANIFEST, CollectionLayout
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import INDEXED_VECTORS, NO_VECTORS, Vectors
from tercet.index.documents.id_register import IdRegister
from tercet.index.errors import CollectionNotFoundError, InvalidDocumentError, SearchIndexError
from tercet.index.files.lock import ExclusiveLock
from tercet.index.ledger.ledger import Ledger
from tercet.index.ledger.records import NOTHING, LedgerEntry
from tercet.index.ledger.remote import require_none
from tercet.index.publisher import Publisher
from tercet.index.segments.checks import check_batch
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.writer import FilledSegment, SegmentWriter
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Representations


@dataclass(frozen=True, slots=True)
class SegmentLimits:
    """When a segment is complete and the next begins.

    documents: or windows, in a collection with them; total_bytes: of its streamed files without token
    vectors; buffered_bytes: of memory that waits for its end. A document's windows stay together, so it may
    pass the limits.
    """

    documents: int = 250_000
    total_bytes: int = 8 * 2**30
    buffered_bytes: int = 2**28

    def reached_by(self, segment: SegmentWriter) -> bool:
        return (
            segment.encodings >= self.documents
            or segment.total_bytes >= self.total_bytes
            or segment.buffered_bytes >= self.buffered_bytes
        )


class SnapshotWriter:
    """Replaces all documents of a collection.

    Used as a context manager: entering takes the collection's lock (CollectionBusyError where another
    writer has it, in any process) and clears what surely belongs to nobody; leaving without `publish`
    removes what was written, and after it all that the new snapshot does not name. Whatever fails, and
    whenever the process dies, the former snapshot stays current until `publish` renames the new name into
    place, and its files stay until that has been forced to the disk.
    """

    def __init__(
        self,
        layout: CollectionLayout,
        settings: CollectionSettings,
        limits: SegmentLimits | None = None,
        mark: str | None = None,
        beside: Vectors = NO_VECTORS,
    ) -> None:
        """mark: what the names of its segments end with, new for each writer; by default random. beside: the
        dense vectors of segments that these will lie beside, where they are for another collection.
        """
        self._layout = layout
        self._settings = settings
        self._limits = limits or SegmentLimits()
        self._mark = mark or secrets.token_hex(4)
        self._lock = ExclusiveLock(layout.lock, f"collection {settings.name!r}")
        self._ids = IdRegister()
        self._analyzer = Analyzer(settings.bm25_language)
        self._publisher: Publisher  # from entering on
        self._beside = beside
        self._filled: list[FilledSegment] = []
        self._open: SegmentWriter | None = None
        self._name = ""
        self._continued: bytes | None = None  # id of the document that the next batch goes on with
        self._writable = False

    def __enter__(self) -> SnapshotWriter:
        self._lock.acquire()
        try:
            self._settings = self._stored_settings().with_lineage(self._layout.folder)
            Fence.read(self._layout).require_open(self._settings.name)
            require_none(self._layout)
            self._publisher = Publisher.of_build(self._layout, self._settings)
            self._name = self._publisher.next_name
        except BaseException:
            self._lock.release()
            raise
        self._writable = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writable = False
        try:
            if self._open is not None:
                self._open.close()
                self._open = None
        finally:
            try:
                # Removing gigabytes takes seconds. Interrupted then, a publication is still one; the next
                # writer removes the rest.
                with suppress(KeyboardInterrupt, OSError):
                    self._publisher.remove_left(self._name, self._mark)
            finally:
                self._lock.release()

    @property
    def documents(self) -> int:
        return len(self._ids)

    def add(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        already_pooled: bool = False,
    ) -> None:
        """Adds documents with all outputs of one encoder pass: one row each, or one for each window.

        windows: in a collection with them, those of each document. A document may come in several batches,
        so that a long one takes no more memory than others. already_pooled: whether tokens share vectors, as
        they shall in a collection with token pooling.
        Raises InvalidDocumentError or DuplicateDocumentError, naming the document, before anything of
        the batch is written: the writer can go on without it, unless a document of it had begun before. After
        an OSError it cannot.
        """
        self._require_writable()
        batch = check_batch(
            documents, representations, self._settings, windows, self._analyzer, already_pooled=already_pooled
        )
        ids = batch.ids.take(np.arange(len(batch)))
        self._ids.add(self._new_ids(ids))
        self._writable = False
        start = 0
        while start < len(batch):
            start += self._append_some(batch, start)
        self._continued = ids[-1] if batch.continues else None
        self._writable = True

    def publish(self, indexed: Callable[[int, int], None] = lambda done, total: None) -> str:
        """Completes the segments, makes them the current snapshot and returns its name, such as "000007".

        The dense kind is chosen now that all vectors are known, and indexes are built of it. indexed: is told
        how many of how many vectors are in them, and may raise to end that.
        It has returned when the publication lasts through a loss of power. Raises UnforcedPublicationError
        where the snapshot is current, but that could not be forced to the disk: then the files of the former
        one stay, too. After any other exception the former snapshot is current.
        """
        self._require_writable()
        if self._continued is not None:
            raise SearchIndexError(
                f"document {self._continued.decode()!r} lacks its last windows; add them before publishing"
            )
        self._writable = False
        self._end_segment()
        total, done = sum(filled.encodings for filled in self._filled), 0

        def inserted(vectors: int) -> None:
            nonlocal done
            done += vectors
            indexed(done, total)

        finished = self._publisher.finished(self._filled, self._beside, INDEXED_VECTORS, inserted)
        entries = [entry for entry, _ in finished]
        position = self._take_position()
        self._publisher.publish([replace(entry, written_at=position) for entry in entries], position)
        return self._name

    def _take_position(self) -> int:
        """The position at which this build replaces what all operations before it wrote: one of its own, so
        that who read a document before learns that it has changed. 0 where there was nothing to replace.

        Their answers are forgotten before the build takes back what they acknowledge.
        """
        if self._name == FIRST_MANIFEST and not self._layout.ledger.exists():
            return 0
        with Ledger.open(self._layout.ledger) as ledger:
            former = self._publisher.manifest.ledger_position
            position = ledger.append([LedgerEntry(NOTHING, b"")], least_position=former + 1)
            ledger.forget_answers(position)
            return position

    def _append_some(self, batch: DocumentRows, start: int) -> int:
        """Adds as many documents as the open segment has room for; returns how many."""
        if self._open is None:
            self._open = self._publisher.begin(len(self._filled), self._mark)
        stop = batch.fitting(start, self._limits.documents - self._open.encodings)
        self._open.append(batch.span(start, stop))
        if self._limits.reached_by(self._open) and not self._open.within_document:
            self._end_segment()
        return stop - start

    def _new_ids(self, ids: list[bytes]) -> list[bytes]:
        """The ids of a batch but for one that the batch before began with. Raises InvalidDocumentError."""
        if self._continued is None:
            return ids
        if ids[:1] != [self._continued]:
            raise InvalidDocumentError(
                f"document {self._continued.decode()!r} lacks its last windows; begin the next batch with it"
            )
        return ids[1:]

    def _end_segment(self) -> None:
        if self._open is not None:
            self._filled.append(self._open.end())
            self._open = None

    def _require_writable(self) -> None:
        if not self._writable:
            raise SearchIndexError(
                f"this writer of collection {self._settings.name!r} is closed, has published or failed; "
                "open another"
            )

    def _stored_settings(self) -> CollectionSettings:
        """Those of the folder. Raises CollectionNotFoundError where they are not those that were given:
        someone may have deleted the collection, and created another, before this writer had the lock.
        """
        with suppress(FileNotFoundError):
            stored = CollectionSettings.read(self._layout.settings)
            if stored == self._settings:
                return stored
        raise CollectionNotFoundError(
            f"collection {self._settings.name!r} was deleted or created anew meanwhile; open it again"
        )
