"""One immutable segment: on the disk, mapped read-only, or in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tercet.index.bm25.segment import Bm25Segment
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.index import DenseIndex
from tercet.index.dense.kinds import Device
from tercet.index.documents.conditions import Condition
from tercet.index.documents.field_indexes import FieldIndexes
from tercet.index.documents.fields import Column, field_stems, open_columns
from tercet.index.documents.matching import Matching
from tercet.index.documents.row_set import RowSet
from tercet.index.documents.store import DocumentStore
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource
from tercet.index.files.memory_arrays import MemoryArrays
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.files.pieces import Pieces
from tercet.index.languages.sample import SegmentLanguages
from tercet.index.segments.builder import DENSE, POSITIONS, SegmentBuilder
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.files import check_files, open_arrays
from tercet.index.segments.rows import DocumentRows, Float16
from tercet.index.sparse.forward_rows import open_forward_rows
from tercet.index.sparse.inverted_index import InvertedIndex
from tercet.index.sparse.left_counts import LeftCounts
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.index.token_vectors.store import TokenVectorStore
from tercet.index.windows.store import WindowStore
from tercet.models.representations import (
    Bool,
    Int64,
    SparseRows,
    ragged_positions,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """The parts of a segment of N documents.

    vectors: float16[N, D], or [W, D] of all windows; token_vectors: of documents, or of windows, None for the
    codec none; statistics, of the rows that are not deleted, is None in a collection without idf, bm25 in one
    without that, windows in one without them. positions: int64[N], the ledger's position that each document
    was written at, 0 by a build. matching: the rows that conditions over the columns allow, deleted ones
    too; it finds them by the indexes. kept: bool[N], the rows that are not deleted, `documents_kept` in all;
    None where none is. entry: the manifest's, by which it was opened; more rows may be deleted since then.
    None in memory.
    """

    arrays: ArraySource
    vectors: Float16
    dense_index: DenseIndex
    forward: SparseRows
    inverted: InvertedIndex
    token_vectors: TokenVectorStore | None
    documents: DocumentStore
    positions: Int64
    columns: Mapping[str, Column]
    languages: SegmentLanguages
    indexes: FieldIndexes
    matching: Matching
    statistics: LeftCounts[TermStatistics] | None
    bm25: Bm25Segment | None
    windows: WindowStore | None
    documents_kept: int
    kept: Bool | None = None
    entry: SegmentEntry | None = None

    @staticmethod
    def open(
        layout: CollectionLayout,
        entry: SegmentEntry,
        settings: CollectionSettings,
        device: Device = "cpu",
        former: Segment | None = None,
    ) -> Segment:
        """Maps all parts of a published segment, with its delete marks; `device` is where dense search runs.

        former: the segment of this id that is open already, with the same settings and device. It stays open
        where it is of the same files, and what was deleted since is marked in it.
        Raises DamagedIndexError, naming the file, for a missing or truncated one.
        """
        again = None if former is None else former._opened_again(layout, entry)
        if again is not None:
            return again
        folder = layout.segment(entry.id)
        check_files(folder, entry)

        arrays = open_arrays(folder, entry)

        def dense_index(vectors: Float16) -> DenseIndex:
            return DenseIndex.open(entry.dense_kind, vectors, arrays, folder, device)

        fields = settings.first_fields if entry.fields is None else entry.fields
        whole = Segment._of(arrays, entry.documents, entry.windows or 0, settings, fields, dense_index)
        marked = whole.written_at(entry.written_at).without(read_deletes(layout, entry))
        return replace(marked, entry=entry)

    def _opened_again(self, layout: CollectionLayout, entry: SegmentEntry) -> Segment | None:
        """This segment with the delete marks of another entry; None where it cannot be had from this one."""
        if self.entry is None or replace(self.entry, deletes=entry.deletes) != entry:
            return None
        if self.entry == entry and self.documents_kept == entry.documents_kept:
            return self
        marks, deleted = read_deletes(layout, entry), self.rows_deleted()
        if len(np.setdiff1d(deleted, marks)):  # rows that are there again: of a former manifest, put back
            return None
        return replace(self.without(np.setdiff1d(marks, deleted)), entry=entry)

    @staticmethod
    def in_memory(rows: Iterable[DocumentRows], settings: CollectionSettings) -> Segment:
        """A segment that no disk has, of complete documents. Its dense side is scanned."""
        arrays = MemoryArrays()
        builder = SegmentBuilder(arrays, settings)
        for some in rows:
            builder.append(some)
        builder.finish()
        counts, fields = (builder.documents, builder.encodings), sorted(settings.fields)
        return Segment._of(arrays, *counts, settings, fields, DenseIndex.scanning)

    @staticmethod
    def _of(
        arrays: ArraySource,
        documents: int,
        windows: int,
        settings: CollectionSettings,
        fields: Sequence[str | None],
        dense_index: Callable[[Float16], DenseIndex],
    ) -> Segment:
        """fields: those that the arrays have, in the order of their places."""
        texts, window_store = documents, None
        if settings.window is not None:
            texts, window_store = windows, WindowStore.open(arrays, documents, windows)
        vectors = arrays.open(DENSE, np.float16, (settings.dense_dimension,), texts)
        forward = open_forward_rows(arrays, documents)
        token_vectors = None
        if settings.stores_token_vectors:
            token_vectors = TokenVectorStore.open(
                arrays, settings.token_codec, texts, settings.colbert_dimension, settings.codebook
            )
        inverted, statistics = InvertedIndex.open(arrays, forward), None
        if settings.lexical == "idf":
            counted = TermStatistics.open(arrays, inverted.terms, documents, settings.vocabulary_size)
            statistics = LeftCounts(counted, lambda counts, rows: counts.without(forward.take(rows)))
        stored = DocumentStore.open(arrays, documents)
        stems = field_stems(fields)
        columns = open_columns(arrays, settings.fields, stems, documents)
        indexes = FieldIndexes.open(arrays, columns, stems, documents)
        return Segment(
            arrays,
            vectors,
            dense_index(vectors),
            forward,
            inverted,
            token_vectors,
            stored,
            _open_positions(arrays, documents),
            columns,
            SegmentLanguages(stored),
            indexes,
            Matching(columns, indexes, documents),
            statistics,
            Bm25Segment.open(arrays, documents) if settings.bm25 else None,
            window_store,
            documents,
        )

    def without(self, rows: Int64) -> Segment:
        """The segment with these rows deleted, too: distinct ones that it kept."""
        if not len(rows):
            return self
        kept = np.ones(len(self), np.bool_) if self.kept is None else self.kept.copy()
        kept[rows] = False
        return replace(
            self,
            statistics=None if self.statistics is None else self.statistics.without(rows),
            bm25=None if self.bm25 is None else self.bm25.without(rows),
            documents_kept=self.documents_kept - len(rows),
            kept=kept,
        )

    def written_at(self, position: int) -> Segment:
        """The segment with documents that count as written at this position, where they were not later."""
        return replace(self, positions=np.maximum(self.positions, position)) if position else self

    def find(self, identifier: bytes) -> int | None:
        """The row of an id; None where it is not there or deleted."""
        row = int(self.find_all(PackedBytes.of([identifier]))[0])
        return None if row < 0 else row

    def find_all(self, identifiers: PackedBytes) -> Int64:
        """The row of each id, int64[T]; -1 where it is not there or deleted."""
        rows = self.documents.find_all(identifiers)
        if self.kept is not None:
            present = rows >= 0
            rows[present] = np.where(self.kept[rows[present]], rows[present], -1)
        return rows

    def rows_kept(self) -> Int64:
        """The rows that are not deleted, ascending."""
        return np.arange(len(self)) if self.kept is None else np.flatnonzero(self.kept)

    def rows_deleted(self) -> Int64:
        """The others, ascending."""
        return np.empty(0, np.int64) if self.kept is None else np.flatnonzero(~self.kept)

    def tokens_of(self, rows: Int64) -> Int64:
        """Token vectors of each document; 1 each where they are not stored."""
        if self.token_vectors is None:
            return np.ones(len(rows), np.int64)
        offsets = self.token_vectors.offsets
        if self.windows is not None:
            offsets = offsets[self.windows.offsets]
        return offsets[rows + 1] - offsets[rows]

    def take(self, rows: Int64) -> DocumentRows:
        """Some documents as they are stored: rows of distinct documents, ascending."""
        if len(rows) == len(self) and self.windows is None:
            return self._all()
        offsets, texts, sparse = np.arange(len(rows) + 1), rows, self.forward
        windows = None
        if self.windows is None:
            sparse = self.forward.take(rows)
        else:
            windows, sparse = self.windows.rows_of(rows, self.forward)
            offsets, texts = windows.offsets, ragged_positions(self.windows.offsets, rows)
        return DocumentRows(
            self.documents.ids.gather(rows),
            self.documents.contents.gather(rows),
            self.positions[rows],
            {name: column.take(rows) for name, column in self.columns.items()},
            offsets,
            self.vectors[texts],
            sparse,
            None if self.token_vectors is None else self.token_vectors.take(texts),
            None if self.bm25 is None else self.bm25.words_of(rows),
            windows,
        )

    def _all(self) -> DocumentRows:
        """The documents of a segment without windows, over the same memory."""
        return DocumentRows(
            self.documents.ids,
            self.documents.contents,
            self.positions,
            self.columns,
            np.arange(len(self) + 1),
            self.vectors,
            self.forward,
            self.token_vectors,
            None if self.bm25 is None else self.bm25.words,
            None,
        )

    def __len__(self) -> int:
        return len(self.forward)

    @property
    def encodings(self) -> int:
        """Its encoded texts: windows, or documents in a collection without them."""
        return len(self.vectors)

    def allowed(self, condition: Condition | None) -> RowSet | None:
        """The rows that a condition allows and that are not deleted; None is all of the segment."""
        if condition is None:
            return None if self.kept is None else RowSet.of_mask(self.kept, self.documents_kept)
        matching = self.matching.rows(condition)
        return matching if self.kept is None else matching.also(self.kept)

    def pieces(self, rows: Int64) -> Pieces:
        """Where what dense and lexical scores of the rows read lies."""
        texts = self.texts_of(rows)[0]
        return self.inverted.pieces(rows).joined_with(Pieces.of(self.vectors, texts, texts + 1))

    def token_pieces(self, rows: Int64) -> Pieces:
        """Where the codes of the rows' token vectors lie."""
        assert self.token_vectors is not None  # noqa: S101 - else no query has any
        return self.token_vectors.pieces(self.texts_of(rows)[0])

    def centroid_pieces(self, rows: Int64) -> Pieces:
        """Where the centroids of the rows' token vectors lie."""
        assert self.token_vectors is not None  # noqa: S101 - else no query has any
        return self.token_vectors.centroid_pieces(self.texts_of(rows)[0])

    def texts_of(self, rows: Int64) -> tuple[Int64, Int64]:
        """What was encoded of the rows, row by row: they themselves, or their windows, int64[W]; and how many
        each has, int64[K].
        """
        if self.windows is None or self.windows.undivided:
            return rows, np.ones(len(rows), np.int64)
        offsets = self.windows.offsets
        return ragged_positions(offsets, rows), offsets[rows + 1] - offsets[rows]


def _open_positions(arrays: ArraySource, documents: int) -> Int64:
    """The ledger's position that each document was written at, int64[N]."""
    positions: Int64 = arrays.open(POSITIONS, np.int64, rows=documents)
    if positions.min(initial=0) < 0:
        raise damaged(arrays.path(POSITIONS), "holds a position below 0")
    return positions
