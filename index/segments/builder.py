"""Makes a segment's arrays: streams its parts, then builds what is made of them."""

from __future__ import annotations

import numpy as np

from tercet.index.bm25.writer import Bm25Writer
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.field_indexes import STORED_DOCUMENTS, write_indexes
from tercet.index.documents.fields import field_stems, open_columns
from tercet.index.documents.fields_writer import FieldsWriter
from tercet.index.documents.store import DocumentWriter
from tercet.index.files.arrays import ArrayTarget
from tercet.index.files.streams import Streams
from tercet.index.segments.rows import DocumentRows
from tercet.index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from tercet.index.sparse.inverted_index import build_inverted
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.index.token_vectors.store import TokenVectorWriter
from tercet.index.windows.store import WindowWriter

DENSE = "dense"
POSITIONS = "positions"


class SegmentBuilder(Streams):
    """Streams documents into arrays, all but those of FAISS."""

    def __init__(self, arrays: ArrayTarget, settings: CollectionSettings) -> None:
        self._arrays = arrays
        self._settings = settings
        self._dense = arrays.stream(DENSE, np.float16, (settings.dense_dimension,))
        self._positions = arrays.stream(POSITIONS, np.int64)
        self._forward = ForwardRowsWriter(arrays)
        self._documents = DocumentWriter(arrays)
        self._stems = field_stems(sorted(settings.fields))
        self._fields = FieldsWriter(arrays, settings.fields, self._stems)
        self._windows = None if settings.window is None else WindowWriter(arrays)
        self._tokens: TokenVectorWriter | None = None
        if settings.stores_token_vectors:
            self._tokens = TokenVectorWriter(
                arrays, settings.token_codec, settings.colbert_dimension, settings.codebook
            )
        self._bm25 = Bm25Writer(arrays) if settings.bm25 else None
        streams = (
            self._dense,
            self._positions,
            self._forward,
            self._documents,
            self._fields,
            self._tokens,
            self._bm25,
            self._windows,
        )
        super().__init__(*(stream for stream in streams if stream is not None))

    @property
    def documents(self) -> int:
        """Documents that are complete so far."""
        return self._forward.rows

    @property
    def encodings(self) -> int:
        """Encoded texts so far: windows, or documents in a collection without them."""
        return self._dense.rows

    @property
    def tokens(self) -> int:
        return 0 if self._tokens is None else self._tokens.tokens

    @property
    def within_document(self) -> bool:
        """Whether further windows of the last document are to come."""
        return self._windows is not None and self._windows.within_document

    @property
    def total_bytes(self) -> int:
        """Bytes of the streamed arrays so far, without token vectors and the indexes built at the end."""
        return super().total_bytes - (0 if self._tokens is None else self._tokens.total_bytes)

    @property
    def buffered_bytes(self) -> int:
        """About how much memory waits for the end of the segment."""
        return self._fields.buffered_bytes + (0 if self._bm25 is None else self._bm25.buffered_bytes)

    def append(self, rows: DocumentRows) -> None:
        """Adds documents; one that continues has its row once its last window is here."""
        lexical = rows.sparse
        if self._windows is not None and rows.windows is not None:
            lexical = self._windows.append(rows.windows, rows.sparse)
        self._dense.append(rows.dense)
        if self._tokens is not None and rows.tokens is not None:
            self._tokens.append(rows.tokens)
        complete = len(lexical)
        if complete:  # else all of the batch lies within one document
            self._forward.append(lexical)
            self._documents.append(rows.ids.span(0, complete), rows.contents.span(0, complete))
            self._positions.append(rows.positions[:complete])
            columns = rows.columns
            if complete < len(rows):
                columns = {name: column.take(np.arange(complete)) for name, column in columns.items()}
            self._fields.append(columns, complete)
            if self._bm25 is not None and rows.words is not None:
                self._bm25.append(rows.words)

    def finish(self) -> None:
        """Completes the streams and builds the inverted index and those of fields from them.

        Works from what was written, so memory stays far below its size where that is on disk.
        """
        super().finish()
        forward = open_forward_rows(self._arrays, self.documents)
        build_inverted(forward, self._settings.vocabulary_size, self._arrays)
        if self.documents >= STORED_DOCUMENTS:
            columns = open_columns(self._arrays, self._settings.fields, self._stems, self.documents)
            write_indexes(self._arrays, columns, self._stems, self.documents)
        if self._settings.lexical == "idf":
            TermStatistics.of(forward, self._settings.vocabulary_size).write(self._arrays)
