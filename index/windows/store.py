"""The windows of one segment's documents: which belong to which, where they lie, their lexical weights.

A document of several windows has a dense vector and token vectors for each of them, one after the other:

    window_offsets.npy           int64[N+1]   boundaries of the documents' windows, at least one each
    window_spans.npy             int32[W, 2]  first character and end of each in the document's text
    window_lexical_indptr.npy    int64[W+1]   boundaries of the windows' lexical rows
    window_lexical_token_ids.npy, window_lexical_weights.npy

N documents, W windows. The forward rows and the inverted index are of documents: the largest weight of each
term in any window. A document of one window has no lexical row here, since its forward row is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.candidates import Document, Window
from tercet.index.documents.row_set import RowSet
from tercet.index.errors import damaged
from tercet.index.files.arrays import ArraySource, ArrayTarget
from tercet.index.files.packed_bytes import open_offsets
from tercet.index.files.streams import Streams
from tercet.index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from tercet.models.representations import Int32, Int64, SparseRows, offsets_of, ragged_positions

LEXICAL_STEM = "window_lexical"


@dataclass(frozen=True, slots=True)
class DocumentWindows:
    """The windows of B documents, W in all, document by document.

    offsets: int64[B+1], the windows of each document, at least one; spans: int64[W, 2], the first character
    and the end of each in its document's text; continues: whether further windows of the last document
    follow in the next batch, which then begins with that document.
    """

    offsets: Int64
    spans: Int64
    continues: bool = False

    @staticmethod
    def whole(documents: Sequence[Document]) -> DocumentWindows:
        """One window for each document, all of its text."""
        ends = np.array([len(document.text) for document in documents], np.int64)
        return DocumentWindows(np.arange(len(ends) + 1), np.stack([np.zeros_like(ends), ends], axis=1))

    @staticmethod
    def concatenate(parts: Sequence[DocumentWindows]) -> DocumentWindows:
        """The windows of the documents of all parts, which are complete."""
        return DocumentWindows(
            offsets_of(np.concatenate([np.diff(part.offsets) for part in parts])),
            np.concatenate([part.spans for part in parts]),
        )

    def take(self, documents: Int64) -> DocumentWindows:
        """The windows of some documents, ascending where the last one continues."""
        return DocumentWindows(
            offsets_of(self.offsets[documents + 1] - self.offsets[documents]),
            self.spans[ragged_positions(self.offsets, documents)],
            self.continues and bool((documents[-1:] == len(self.offsets) - 2).any()),
        )


def largest_weights(rows: SparseRows, offsets: Int64) -> SparseRows:
    """One row for each stretch of rows: the largest weight of every term in any of them.

    offsets: int64[B+1], boundaries of the stretches. Token ids ascend within a row.
    """
    terms = np.diff(rows.indptr[offsets])  # (B,)
    keys = np.repeat(np.arange(len(terms), dtype=np.int64) << 32, terms) | rows.token_ids
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    begins = np.ones(len(keys), np.bool_)
    begins[1:] = keys[1:] != keys[:-1]
    starts = np.flatnonzero(begins)
    weights = np.maximum.reduceat(rows.weights[order], starts) if len(starts) else rows.weights[:0]
    counts = np.bincount(keys[starts] >> 32, minlength=len(terms))
    return SparseRows(offsets_of(counts), (keys[starts] & 0xFFFFFFFF).astype(np.int32), weights)


class WindowWriter(Streams):
    """Streams the windows of one segment, also of a document that comes in several batches."""

    def __init__(self, arrays: ArrayTarget) -> None:
        self._offsets = arrays.stream("window_offsets", np.int64)
        self._spans = arrays.stream("window_spans", np.int32, (2,))
        self._lexical = ForwardRowsWriter(arrays, LEXICAL_STEM)
        self._offsets.append(np.zeros(1, np.int64))
        self._begun: SparseRows | None = None
        super().__init__(self._offsets, self._spans, self._lexical)

    @property
    def within_document(self) -> bool:
        """Whether further windows of the last document are to come."""
        return self._begun is not None

    def append(self, windows: DocumentWindows, lexical: SparseRows) -> SparseRows:
        """Adds windows with their lexical rows. Returns the rows of the documents that are complete now."""
        ends = self._spans.rows + windows.offsets[1:]
        self._spans.append(windows.spans)
        self._lexical.append(_of_several(lexical, windows, continued=self.within_document))
        rows = largest_weights(*self._with_begun(lexical, windows.offsets))
        complete = len(ends) - 1 if windows.continues else len(ends)
        self._offsets.append(ends[:complete])
        self._begun = rows.take(np.array([complete], np.int64)) if windows.continues else None
        return rows.take(np.arange(complete, dtype=np.int64))

    def _with_begun(self, lexical: SparseRows, offsets: Int64) -> tuple[SparseRows, Int64]:
        """The rows with what the first document has so far as one more of its windows."""
        if self._begun is None:
            return lexical, offsets
        return SparseRows.concatenate([self._begun, lexical]), np.append(0, offsets[1:] + 1)


def _of_several(lexical: SparseRows, windows: DocumentWindows, *, continued: bool) -> SparseRows:
    """The rows, but empty ones for windows that are the only one of their document.

    continued: whether the first document has windows in an earlier batch.
    """
    counts = np.diff(windows.offsets)
    alone = counts == 1
    alone[0] &= not continued
    alone[-1] &= not windows.continues
    kept = np.repeat(~alone, counts)  # (W,)
    lengths = np.diff(lexical.indptr)
    terms = np.repeat(kept, lengths)
    return SparseRows(offsets_of(lengths * kept), lexical.token_ids[terms], lexical.weights[terms])


@dataclass(frozen=True, slots=True)
class WindowStore:
    """The windows of one segment. offsets: int64[N+1]; spans: int32[W, 2]; lexical: W rows, empty
    for windows that are their document's only one.
    """

    offsets: Int64
    spans: Int32
    lexical: SparseRows

    @staticmethod
    def open(arrays: ArraySource, documents: int, windows: int) -> WindowStore:
        """Opens them. Raises DamagedIndexError naming the file."""
        offsets = open_offsets(arrays, "window_offsets", documents)
        if offsets[-1] != windows or not (offsets[1:] > offsets[:-1]).all():
            raise damaged(
                arrays.path("window_offsets"),
                f"does not divide {windows} windows among {documents} documents",
            )
        return WindowStore(
            offsets,
            arrays.open("window_spans", np.int32, (2,), windows),
            open_forward_rows(arrays, windows, LEXICAL_STEM),
        )

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def undivided(self) -> bool:
        """Whether each document is one window, so that rows of documents are rows of windows."""
        return len(self) == len(self.offsets) - 1

    def of(self, row: int) -> Int64:
        """The windows of a document, int64[n]."""
        return np.arange(self.offsets[row], self.offsets[row + 1])

    def rows_of(self, documents: Int64, forward: SparseRows) -> tuple[DocumentWindows, SparseRows]:
        """The windows of some documents, with the lexical row of each; forward: the rows of all documents."""
        if self.undivided:
            spans = self.spans[documents].astype(np.int64)
            return DocumentWindows(np.arange(len(documents) + 1), spans), forward.take(documents)
        windows = ragged_positions(self.offsets, documents)
        counts = self.offsets[documents + 1] - self.offsets[documents]
        own = np.arange(len(windows))
        of_document = len(windows) + np.repeat(np.arange(len(documents)), counts)
        both = SparseRows.concatenate([self.lexical.take(windows), forward.take(documents)])
        lexical = both.take(np.where(np.repeat(counts == 1, counts), of_document, own))
        return DocumentWindows(offsets_of(counts), self.spans[windows].astype(np.int64)), lexical

    def windows_of(self, documents: RowSet) -> RowSet:
        """The windows of some documents."""
        if documents.few:
            return RowSet.of(ragged_positions(self.offsets, documents.rows), len(self))
        return RowSet.of_mask(np.repeat(documents.mask, np.diff(self.offsets)))

    def documents_of(self, windows: Int64) -> Int64:
        """The document of each window."""
        return np.searchsorted(self.offsets, windows, "right") - 1

    def window(self, row: int, number: int) -> Window:
        """One of a document's windows, by its place among them."""
        start, end = self.spans[int(self.offsets[row]) + number].tolist()
        return Window(number, start, end)

    def of_terms(self, row: int, token_ids: Int32) -> Int64:
        """For terms int32[T] of a document, ascending, the first of its windows where each weighs most."""
        windows = self.of(row)
        if len(windows) == 1:
            return np.zeros(len(token_ids), np.int64)
        rows = self.lexical.take(windows)
        owners = np.repeat(np.arange(len(windows)), np.diff(rows.indptr))
        kept = np.isin(rows.token_ids, token_ids)
        ids, weights, owners = rows.token_ids[kept], rows.weights[kept], owners[kept]
        order = np.lexsort((owners, -weights, ids))
        first = np.unique(ids[order], return_index=True)[1]
        return owners[order[first]]
