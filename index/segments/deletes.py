"""Delete marks: which rows of a published segment are deleted, in an immutable file for each generation.

`deletes/<segment>-<manifest>.npy` is int64[deleted], the rows in ascending order. The manifest that names it
has its size and checksum; the next generation holds all rows of the one before.
"""

from __future__ import annotations

import numpy as np

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import DeletesEntry, SegmentEntry
from tercet.index.errors import damaged
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.content import sha256_of
from tercet.index.files.directory import make_folder, remove_file
from tercet.models.files import force
from tercet.models.representations import Int64


def write_deletes(layout: CollectionLayout, segment: str, manifest: str, rows: Int64) -> DeletesEntry:
    """Writes the marks of a segment for a manifest to come, which forces the file's name to the disk.

    rows: int64[deleted], ascending, at least one.
    """
    make_folder(layout.deletes)
    name = f"{segment}-{manifest}"
    path = ArrayFolder(layout.deletes).path(name)
    remove_file(path)  # of a writer that was killed before its manifest was published
    ArrayFolder(layout.deletes).write(name, rows)
    force(path)
    return DeletesEntry(path.name, len(rows), path.stat().st_size, sha256_of(path))


def read_deletes(layout: CollectionLayout, entry: SegmentEntry) -> Int64:
    """The deleted rows of a segment, int64[deleted]. Raises DamagedIndexError naming the file."""
    if entry.deletes is None:
        return np.empty(0, np.int64)
    path = layout.deletes / entry.deletes.file
    if sha256_of(path) != entry.deletes.sha256:
        raise damaged(path, "was altered")
    rows: Int64 = ArrayFolder(layout.deletes).open(path.stem, np.int64, rows=entry.deletes.documents)
    inside = rows.min() >= 0 and rows.max() < entry.documents
    if not inside or (np.diff(rows) <= 0).any():
        raise damaged(path, "does not name distinct rows of its segment in order")
    return np.array(rows)
