"""Writes one segment: streams its parts, then builds the dense and the inverted index from their files."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np

from index.bm25.writer import Bm25Writer
from index.catalog.manifest import FileEntry, SegmentEntry
from index.catalog.settings import CollectionSettings
from index.dense.index import DenseKind, build_dense, choose_kind
from index.documents.fields_writer import FieldsWriter
from index.documents.store import DocumentWriter
from index.files.array_folder import ArrayFolder
from index.files.storage import sha256_of, sync_file, sync_folder
from index.segments.batch import CheckedBatch
from index.sparse.forward_rows import ForwardRowsWriter, open_forward_rows
from index.sparse.inverted_index import build_inverted
from index.sparse.term_statistics import TermStatistics
from index.token_vectors.store import TokenVectorWriter
from index.windows.store import WindowWriter

DENSE = "dense"


class _Stream(Protocol):
    @property
    def total_bytes(self) -> int: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...


class SegmentWriter:
    """Streams documents into `<id>.partial`, which `finish` completes and renames to `<id>`."""

    def __init__(
        self, segments: Path, identifier: str, settings: CollectionSettings, collection_encodings: int = 0
    ) -> None:
        """collection_encodings: the encoded texts in segments before this one."""
        self._identifier = identifier
        self._collection_encodings = collection_encodings
        self._settings = settings
        self._final = segments / identifier
        self._folder = segments / f"{identifier}.partial"
        self._folder.mkdir()
        self._arrays = ArrayFolder(self._folder)
        self._dense = self._arrays.stream(DENSE, np.float16, (settings.dense_dimension,))
        self._forward = ForwardRowsWriter(self._arrays)
        self._documents = DocumentWriter(self._arrays)
        self._fields = FieldsWriter(self._arrays, settings.fields)
        self._windows = None if settings.window is None else WindowWriter(self._arrays)
        self._tokens: TokenVectorWriter | None = None
        if settings.stores_token_vectors:
            self._tokens = TokenVectorWriter(self._arrays, settings.token_codec, settings.colbert_dimension)
        self._bm25 = Bm25Writer(self._arrays, settings.bm25_language) if settings.bm25 else None

    @property
    def encodings(self) -> int:
        """Encoded texts so far: windows, or documents in a collection without them."""
        return self._dense.rows

    @property
    def within_document(self) -> bool:
        """Whether further windows of the last document are to come."""
        return self._windows is not None and self._windows.within_document

    @property
    def total_bytes(self) -> int:
        """Bytes of the streamed files so far, without the indexes built at the end."""
        return sum(stream.total_bytes for stream in self._streams())

    @property
    def held_bytes(self) -> int:
        """About how much memory waits for the end of the segment."""
        return self._fields.held_bytes + (0 if self._bm25 is None else self._bm25.held_bytes)

    def append(self, batch: CheckedBatch) -> None:
        """Adds documents; one that continues has its row once its last window is here."""
        lexical = batch.sparse
        if self._windows is not None and batch.windows is not None:
            lexical = self._windows.append(batch.windows, batch.sparse)
        self._dense.append(batch.dense)
        if self._tokens is not None and batch.colbert is not None:
            self._tokens.append(batch.colbert)
        complete = len(lexical)
        if complete:  # else all of the batch lies within one document
            self._forward.append(lexical)
            self._documents.append(batch.documents[:complete])
            self._fields.append(batch.fields[:complete])
            if self._bm25 is not None and batch.texts is not None:
                self._bm25.append(batch.texts[:complete])

    def finish(self) -> SegmentEntry:
        """Builds the indexes, forces every file to the disk, and describes the finished segment."""
        for stream in self._streams():
            stream.finish()
        kind = self._build_indexes()
        files = {path.name: _complete(path) for path in sorted(self._folder.iterdir())}
        sync_folder(self._folder)
        self._folder.rename(self._final)
        sync_folder(self._final.parent)
        return SegmentEntry(
            self._identifier,
            self._forward.rows,
            0 if self._tokens is None else self._tokens.tokens,
            kind,
            files,
            None if self._windows is None else self.encodings,
        )

    def close(self) -> None:
        """Closes what is open; the folder stays for the cleaner."""
        for stream in self._streams():
            stream.close()

    def _streams(self) -> list[_Stream]:
        streams: list[_Stream | None] = [
            self._dense,
            self._forward,
            self._documents,
            self._fields,
            self._tokens,
            self._bm25,
            self._windows,
        ]
        return [stream for stream in streams if stream is not None]

    def _build_indexes(self) -> DenseKind:
        """Works from memory maps of the streamed files, so memory stays far below their size."""
        kind = self._settings.dense_kind
        if kind == "auto":
            kind = choose_kind(self.encodings, self._collection_encodings + self.encodings)
        vectors = self._arrays.open(DENSE, np.float16, (self._settings.dense_dimension,), self.encodings)
        build_dense(kind, vectors, self._folder)
        forward = open_forward_rows(self._arrays, self._forward.rows)
        build_inverted(forward, self._settings.vocabulary_size, self._arrays)
        if self._settings.lexical == "idf":
            TermStatistics.of(forward, self._settings.vocabulary_size).write(self._arrays)
        return kind


def _complete(path: Path) -> FileEntry:
    sync_file(path)
    return FileEntry(path.stat().st_size, sha256_of(path))
