"""Writes one segment to the disk, where it appears whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tercet.index.catalog.manifest import FileEntry, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.building import build_dense
from tercet.index.dense.kinds import DenseKind
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.content import sha256_of
from tercet.index.files.directory import rename
from tercet.index.segments.builder import DENSE, SegmentBuilder
from tercet.index.segments.files import pack_small
from tercet.models.files import force


class SegmentWriter(SegmentBuilder):
    """Streams documents into `<id>.partial`, which `FilledSegment.finish` completes and renames to `<id>`."""

    def __init__(self, segments: Path, identifier: str, settings: CollectionSettings) -> None:
        folder = partial_folder(segments, identifier)
        folder.mkdir()
        super().__init__(ArrayFolder(folder), settings)
        self._segments = segments
        self._identifier = identifier

    def end(self) -> FilledSegment:
        """Ends the documents: builds what needs no choice, and lets go of the memory that waited for it."""
        self.finish()
        counts = self.documents, self.tokens, self.encodings
        return FilledSegment(self._segments, self._identifier, self._settings, *counts)


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
