"""Columns of fields that are declared later, made of the metadata that a published segment stores.

The segment itself never changes: one is made beside it that shares its files and has the new arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.field_indexes import STORED_DOCUMENTS, write_indexes
from tercet.index.documents.fields import Column, columns_of, field_stems, open_columns
from tercet.index.documents.fields_writer import FieldsWriter
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import damaged
from tercet.index.files.array_folder import ArrayFolder
from tercet.index.files.directory import link_or_copy, rename
from tercet.index.files.packed_arrays import PackedArrays, write_packed
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.files import PACKED_FILE
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.index.segments.writer import complete_file, partial_folder
from tercet.models.files import force
from tercet.models.representations import Bool

ROWS_AT_ONCE = 8_192


def with_later_columns(
    source: CollectionLayout,
    entry: SegmentEntry,
    segment: Segment,
    former: CollectionSettings,
    target: CollectionLayout,
    identifier: str,
    new: CollectionSettings,
) -> SegmentEntry:
    """Writes the segment of an entry once more, under this id in the target, without delete marks, and with
    the columns of `new` that `former` had not. segment: the same one, open; deleted documents get no values.

    Its folder's name is still to be forced to the disk. Raises InvalidDocumentError, naming the document, for
    a value of another type than its field's, OSError or DamagedIndexError.
    """
    present = former.first_fields if entry.fields is None else entry.fields
    declared = [name if name in former.fields else None for name in present]
    added = {name: kind for name, kind in new.fields.items() if name not in former.fields}
    stems = field_stems(added, len(declared))
    folder = partial_folder(target.segments, identifier)
    folder.mkdir()
    arrays = ArrayFolder(folder)
    kept = np.ones(len(segment), np.bool_)
    kept[read_deletes(source, entry)] = False
    _write_columns(arrays, segment, kept, added, stems)
    if PACKED_FILE in entry.files:
        written = {name: arrays.written(name) for name in arrays.names()}
        packed = PackedArrays(source.segment(entry.id) / PACKED_FILE)
        write_packed(folder / PACKED_FILE, {**packed.all(), **written})
        for name in written:
            arrays.remove(name)
    files = {path.name: complete_file(path) for path in sorted(folder.iterdir())}
    for name in sorted(entry.files.keys() - files.keys()):
        link_or_copy(source.segment(entry.id) / name, folder / name)
    force(folder)
    rename(folder, target.segment(identifier))
    return replace(
        entry, id=identifier, files={**entry.files, **files}, deletes=None, fields=(*declared, *added)
    )


def with_columns(
    rows: DocumentRows, fields: Mapping[str, FieldType], *, rounded: bool = False
) -> DocumentRows:
    """Documents with columns of all these fields, made of the metadata in their contents.

    rounded: see `field_values`. Raises InvalidDocumentError as `columns_of`; KeyError or ValueError where the
    contents are none.
    """
    added = {name: kind for name, kind in fields.items() if name not in rows.columns}
    if not added:
        return rows
    every = np.arange(len(rows))
    ids = [id.decode() for id in rows.ids.take(every)]
    metadata = [_metadata(content) for content in rows.contents.take(every)]
    columns = columns_of(added, ids, metadata, rounded=rounded)
    return replace(rows, columns={**rows.columns, **columns})


def check_columns(segment: Segment, fields: Mapping[str, FieldType]) -> None:
    """Raises InvalidDocumentError, naming it, for a document of the segment, open, that has a value of
    another type than its field's.
    """
    kept = np.zeros(len(segment), np.bool_)
    kept[segment.rows_kept()] = True
    for _ in _columns_of(segment, kept, fields):
        pass


def _write_columns(
    arrays: ArrayFolder,
    segment: Segment,
    kept: Bool,
    fields: Mapping[str, FieldType],
    stems: Mapping[str, str],
) -> None:
    writer = FieldsWriter(arrays, fields, stems)
    try:
        for columns, count in _columns_of(segment, kept, fields):
            writer.append(columns, count)
        writer.finish()
    except BaseException:
        writer.close()
        raise
    if len(segment) >= STORED_DOCUMENTS:
        columns = open_columns(arrays, fields, stems, len(segment))
        write_indexes(arrays, columns, stems, len(segment))


def _columns_of(
    segment: Segment, kept: Bool, fields: Mapping[str, FieldType]
) -> Iterator[tuple[dict[str, Column], int]]:
    """The columns of a segment's documents, a part at a time, and how many documents that is."""
    documents = segment.documents
    for start in range(0, len(segment), ROWS_AT_ONCE):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(segment)))
        try:
            metadata = [
                _metadata(content) if there else {}
                for content, there in zip(documents.contents.take(rows), kept[rows], strict=True)
            ]
        except (ValueError, TypeError, KeyError) as error:
            raise damaged(
                segment.arrays.path("documents"), f"holds what is no stored document ({error})"
            ) from error
        yield columns_of(fields, documents.ids_of(rows), metadata), len(rows)


def _metadata(content: bytes) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = orjson.loads(content)["metadata"]
    return metadata
