"""What a live collection holds at one position of its ledger: an immutable value that each write replaces.

Documents that no published segment has are in memory, in segments of growing size: one that is added takes
those before it along that are less than `GROWTH` times as large, and take up at most `JOINED_BYTES`. So there
are few of them, about one for each doubling, and a document is copied about as often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionBusyError
from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.index.snapshot import Snapshot
from tercet.index.sparse.term_totals import TermChange
from tercet.index.sparse.term_versions import TermVersion
from tercet.models.representations import Bool, Int64, SparseRows

GROWTH = 2
JOINED_BYTES = 2**25  # to copy more than so much takes longer than to search one segment more

NO_ROWS = SparseRows(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))

Matches = list[tuple[int, Int64, Int64]]
"""Of each segment that has some of the ids sought: its ordinal, its rows, and which ids these have."""


@dataclass(frozen=True, slots=True)
class LiveState:
    """A collection after the operation at `position`.

    name: of the current manifest; published: its segments, without what was deleted since; memory: the
    segments of what was written since; aside: those that a flush is writing to the disk. deleted: while a
    build is under way, the ids that were deleted and the position of each such operation; else None.
    adoptions: how often other segments took the place of documents, which is no operation of its own.
    written: the position of the last operation that changed documents; flushed_position: of the last that
    the manifest holds, with all before it. terms: of its documents, for the idf.
    """

    settings: CollectionSettings
    name: str
    published: tuple[Segment, ...]
    memory: tuple[Segment, ...] = ()
    aside: tuple[Segment, ...] = ()
    position: int = 0
    deleted: tuple[tuple[int, PackedBytes], ...] | None = None
    adoptions: int = 0
    written: int = 0
    flushed_position: int = 0
    terms: TermVersion = field(default_factory=TermVersion)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of this state, published ones first."""
        return self.published + self.aside + self.memory

    @property
    def documents(self) -> int:
        return sum(segment.documents_kept for segment in self.segments)

    @property
    def memory_documents(self) -> int:
        """Documents in memory, deleted ones too, set aside or not."""
        return sum(len(segment) for segment in self.aside + self.memory)

    @property
    def memory_bytes(self) -> int:
        return sum(_bytes_of(segment) for segment in self.aside + self.memory)

    def require_no_build(self, remedy: str) -> None:
        """Raises CollectionBusyError, with what to do, where a build or restore is under way."""
        if self.deleted is not None:
            raise CollectionBusyError(
                f"a build or restore of collection {self.settings.name!r} is under way; {remedy}"
            )

    def snapshot(self) -> Snapshot:
        """What searches of this moment go through."""
        later = self.written if self.written > self.flushed_position else None
        return Snapshot(
            self.name, self.settings, self.segments, later, terms=self.terms, reached=self.position
        )

    def find(self, ids: PackedBytes) -> Matches:
        """Where the documents of these ids are; no id is in two segments."""
        matches: Matches = []
        for ordinal, segment in enumerate(self.segments):
            rows = segment.find_all(ids)
            known = np.flatnonzero(rows >= 0)
            if len(known):
                matches.append((ordinal, rows[known], known))
        return matches

    def put(self, rows: DocumentRows, position: int) -> LiveState:
        """With these documents of distinct ids, in the place of those that had their ids."""
        return self.replaced(rows.ids, rows.written_at(position), position)

    def delete(self, ids: PackedBytes, position: int) -> LiveState:
        """Without the documents of these ids, as far as there are such."""
        left = self.replaced(ids, None, position)
        return left if self.deleted is None else replace(left, deleted=(*self.deleted, (position, ids)))

    def replaced(self, ids: PackedBytes, rows: DocumentRows | None, position: int) -> LiveState:
        """Without the documents of these ids, and with others of some of them, which have their positions."""
        matches = self.find(ids)
        left = self._without(matches, position)
        if rows is None:
            return replace(left, terms=self.terms.after(lambda: self._change(matches, NO_ROWS)))
        memory = _with_rows(left.memory, rows, self.settings)
        forward = memory[-1].forward
        added = np.arange(len(forward) - len(rows), len(forward))
        terms = self.terms.after(lambda: self._change(matches, forward.take(added)))
        return replace(left, memory=memory, terms=terms)

    def deleted_after(self, since: int, up_to: int) -> list[PackedBytes]:
        """The ids that were deleted by operations after one position, up to another."""
        return [ids for position, ids in self.deleted or () if since < position <= up_to]

    def _change(self, matches: Matches, added: SparseRows) -> TermChange:
        """What it does to terms that documents in these rows go, and others come."""
        return TermChange(
            added, tuple(self.segments[ordinal].forward.take(rows) for ordinal, rows, _ in matches)
        )

    def _without(self, matches: Matches, position: int) -> LiveState:
        segments = list(self.segments)
        for ordinal, rows, _ in matches:
            segments[ordinal] = segments[ordinal].without(rows)
        aside = len(self.published)
        memory = aside + len(self.aside)
        return replace(
            self,
            published=tuple(segments[:aside]),
            aside=tuple(segments[aside:memory]),
            memory=tuple(segment for segment in segments[memory:] if segment.documents_kept),
            position=position,
            written=position,
        )

    def set_aside(self) -> LiveState:
        """With what is in memory set aside; nothing may be so already."""
        return replace(self, aside=self.memory, memory=())

    def take_back(self) -> LiveState:
        """With what was set aside in memory as before, since it could not be published."""
        return replace(self, aside=(), memory=self.aside + self.memory)

    def flushed(self, start: LiveState, name: str, written: Segment | None) -> LiveState:
        """With what was set aside in `start` published by the manifest of this name.

        written: a segment of the documents that these segments had then, in order; None where there were
        none. Published segments without any document then are no longer there.
        """
        published = [
            now for then, now in zip(start.published, self.published, strict=True) if then.documents_kept
        ]
        if written is not None:
            rows = [segment.rows_kept() for segment in start.aside]
            published.append(_without_deleted(written, self.aside, rows))
        return replace(self, name=name, published=tuple(published), aside=(), flushed_position=start.position)

    def merged(
        self, ordinals: Sequence[int | None], rows: Sequence[Int64], name: str, written: Segment | None
    ) -> LiveState:
        """With some published segments joined by the manifest of this name.

        ordinals: of the segments, None for one that is gone; rows: which of each segment's documents
        `written` has, in order. written: None where there were none.
        """
        published = [segment for ordinal, segment in enumerate(self.published) if ordinal not in ordinals]
        if written is not None:
            sources = [None if ordinal is None else self.published[ordinal] for ordinal in ordinals]
            published.append(_without_deleted(written, sources, rows))
        return replace(self, name=name, published=tuple(published))

    def adopted(
        self, dropped: Sequence[Bool | None], segments: Sequence[Segment], flushed: int, name: str
    ) -> LiveState:
        """With segments taken over by the manifest of this name, which holds the operations up to `flushed`.

        dropped: of each published segment, bool[N], the documents whose place is taken; None where nothing is
        left of it. segments: without what was written or deleted up to `flushed`.
        """
        published = [
            segment.without(segment.rows_kept()[rows[segment.rows_kept()]])
            for segment, rows in zip(self.published, dropped, strict=True)
            if rows is not None
        ]
        later = [segment.documents.ids for segment in self.memory]
        ids = PackedBytes.concatenate([*later, *self.deleted_after(flushed, self.position)])
        for segment in segments:
            rows = segment.find_all(ids)
            published.append(segment.without(np.unique(rows[rows >= 0])))
        return replace(
            self,
            name=name,
            published=tuple(published),
            adoptions=self.adoptions + 1,
            flushed_position=flushed,
            terms=TermVersion(),
        )


def _with_rows(
    memory: Sequence[Segment], rows: DocumentRows, settings: CollectionSettings
) -> tuple[Segment, ...]:
    """The segments in memory with more documents."""
    first, documents = len(memory), len(rows)
    while first and _joins(memory[first - 1], documents):
        first -= 1
        documents += memory[first].documents_kept
    joined = [segment.take(segment.rows_kept()) for segment in memory[first:]]
    return (*memory[:first], Segment.in_memory([*joined, rows], settings))


def _joins(segment: Segment, documents: int) -> bool:
    """Whether so many documents after a segment in memory take it along."""
    return segment.documents_kept < GROWTH * documents and _bytes_of(segment) <= JOINED_BYTES


def _bytes_of(segment: Segment) -> int:
    assert isinstance(segment.arrays, MemoryArrays)  # noqa: S101 - which no disk has
    return segment.arrays.total_bytes


def _without_deleted(written: Segment, sources: Sequence[Segment | None], rows: Sequence[Int64]) -> Segment:
    """A segment of rows of other segments, without what is deleted in these by now; None: gone as a whole."""
    gone = [
        np.full(len(some), source is None) if source is None or source.kept is None else ~source.kept[some]
        for source, some in zip(sources, rows, strict=True)
    ]
    return written.without(np.flatnonzero(np.concatenate(gone)))
