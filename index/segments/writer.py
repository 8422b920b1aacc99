"""Writes one segment to the disk, where it appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from index.catalog.manifest import FileEntry, SegmentEntry
from index.catalog.settings import CollectionSettings
from index.dense.building import build_dense
from index.dense.kinds import DenseKind
from index.files.array_folder import ArrayFolder
from index.files.content import sha256_of
from index.files.directory import force, rename
from index.segments.builder import DENSE, SegmentBuilder
from index.segments.files import pack_small
from index.segments.rows import DocumentRows


class SegmentWriter:
    """Streams documents into `<id>.partial`, which `FilledSegment.finish` completes and renames to `<id>`."""

    def __init__(self, segments: Path, identifier: str, settings: CollectionSettings) -> None:
        self._segments = segments
        self._identifier = identifier
        self._settings = settings
        folder = partial_folder(segments, identifier)
        folder.mkdir()
        self._builder = SegmentBuilder(ArrayFolder(folder), settings)

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
        """Bytes of the streamed files so far, without token vectors and the indexes built at the end."""
        return self._builder.total_bytes

    @property
    def held_bytes(self) -> int:
        """About how much memory waits for the end of the segment."""
        return self._builder.held_bytes

    def append(self, rows: DocumentRows) -> None:
        """Adds documents; one that continues has its row once its last window is here."""
        self._builder.append(rows)

    def end(self) -> FilledSegment:
        """Ends the documents: builds what needs no choice, and lets go of the memory that waited for it."""
        self._builder.finish()
        counts = self._builder.documents, self._builder.tokens, self._builder.encodings
        return FilledSegment(self._segments, self._identifier, self._settings, *counts)

    def close(self) -> None:
        """Closes what is open; the folder stays for the cleaner."""
        self._builder.close()


@dataclass(frozen=True, slots=True)
class FilledSegment:
    """A segment that has all its documents and lacks the dense index, whose kind is the collection's."""

    segments: Path
    identifier: str
    settings: CollectionSettings
    documents: int
    tokens: int
    encodings: int

    def finish(self, kind: DenseKind, inserted: Callable[[int], None] = lambda _: None) -> SegmentEntry:
        """Builds the dense index, forces every file to the disk, and describes the finished segment.

        Its folder's name is still to be forced.

        inserted: is told now and then of so many more vectors in the index, and may raise to end that.
        """
        folder = partial_folder(self.segments, self.identifier)
        arrays = ArrayFolder(folder)
        vectors = arrays.open(DENSE, np.float16, (self.settings.dense_dimension,), self.encodings)
        build_dense(kind, vectors, arrays, inserted)
        pack_small(arrays)
        files = {}
        for path in sorted(folder.iterdir()):
            inserted(0)
            files[path.name] = complete_file(path)
        force(folder)
        rename(folder, self.segments / self.identifier)
        windows = None if self.settings.window is None else self.encodings
        fields = tuple(sorted(self.settings.fields)) if self.settings.later_fields else None
        counts = self.documents, self.tokens
        return SegmentEntry(self.identifier, *counts, kind, files, windows, fields=fields)


def partial_folder(segments: Path, identifier: str) -> Path:
    """Where a segment is written before it has its name."""
    return segments / f"{identifier}.partial"


def complete_file(path: Path) -> FileEntry:
    """Forces a file that was written to the disk, and describes it."""
    force(path)
    return FileEntry(path.stat().st_size, sha256_of(path))
