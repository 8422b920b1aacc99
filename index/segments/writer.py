"""Writes one segment to the disk, where it appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from index.catalog.manifest import FileEntry, SegmentEntry
from index.catalog.settings import CollectionSettings
from index.dense.index import DenseKind, build_dense, choose_kind
from index.files.array_folder import ArrayFolder
from index.files.storage import sha256_of, sync_file, sync_folder
from index.segments.builder import DENSE, SegmentBuilder
from index.segments.files import pack_small
from index.segments.rows import DocumentRows


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
        self._builder = SegmentBuilder(self._arrays, settings)

    @property
    def encodings(self) -> int:
        """Encoded texts so far: windows, or documents in a collection without them."""
        return self._builder.encodings

    @property
    def within_document(self) -> bool:
        """Whether further windows of the last document are to come."""
        return self._builder.within_document

    @property
    def total_bytes(self) -> int:
        """Bytes of the streamed files so far, without the indexes built at the end."""
        return self._builder.total_bytes

    @property
    def held_bytes(self) -> int:
        """About how much memory waits for the end of the segment."""
        return self._builder.held_bytes

    def append(self, rows: DocumentRows) -> None:
        """Adds documents; one that continues has its row once its last window is here."""
        self._builder.append(rows)

    def finish(self, require_going: Callable[[], None] = lambda: None) -> SegmentEntry:
        """Builds the indexes, forces every file to the disk, and describes the finished segment.

        require_going: is called now and then, and may raise to end that.
        """
        self._builder.finish()
        kind = self._build_dense(require_going)
        pack_small(self._arrays)
        files = {}
        for path in sorted(self._folder.iterdir()):
            require_going()
            files[path.name] = _complete(path)
        sync_folder(self._folder)
        self._folder.rename(self._final)
        sync_folder(self._final.parent)
        return SegmentEntry(
            self._identifier,
            self._builder.documents,
            self._builder.tokens,
            kind,
            files,
            None if self._settings.window is None else self.encodings,
        )

    def close(self) -> None:
        """Closes what is open; the folder stays for the cleaner."""
        self._builder.close()

    def _build_dense(self, require_going: Callable[[], None]) -> DenseKind:
        kind = self._settings.dense_kind
        if kind == "auto":
            kind = choose_kind(self.encodings, self._collection_encodings + self.encodings)
        vectors = self._arrays.open(DENSE, np.float16, (self._settings.dense_dimension,), self.encodings)
        build_dense(kind, vectors, self._folder, require_going)
        return kind


def _complete(path: Path) -> FileEntry:
    sync_file(path)
    return FileEntry(path.stat().st_size, sha256_of(path))
