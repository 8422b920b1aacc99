"""Segments between this machine and an object store, where their files lie by their content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.snapshots.published import file_path
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import FileEntry, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import (
    INDEXED_VECTORS,
    NO_VECTORS,
    DenseKind,
    Vectors,
    collection_kind,
    usual_memory_bytes,
)
from tercet.index.files.scratch import scratch_folder
from tercet.index.publisher import Publisher
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment


def send_segment(store: ObjectStore, folder: Path, entry: SegmentEntry) -> None:
    """Uploads what the store does not have of a segment's files, each verified."""
    for name, file in entry.files.items():
        send_file(store, folder / name, file)


def send_file(store: ObjectStore, path: Path, file: FileEntry) -> None:
    """Uploads a file, verified, unless the store has it."""
    found = store.find(file_path(file.sha256))
    if found is None or found.size_bytes != file.size_bytes:
        store.put_file(file_path(file.sha256), path, file.sha256)


def write_segment(
    store: ObjectStore, rows: Iterable[DocumentRows], settings: CollectionSettings, kind: DenseKind, id: str
) -> SegmentEntry:
    """Makes rows a segment of this id on a store. kind: the dense kind that the whole collection has.

    Raises DamagedIndexError, OSError, and what the store raises.
    """
    others: Vectors = NO_VECTORS if kind == "flat" else {kind: 1}
    with scratch_folder() as folder:
        layout = CollectionLayout(folder)
        writing = Publisher(layout, settings, None).writing(rows, others, INDEXED_VECTORS, settings)
        with writing as (entry, _):
            send_segment(store, layout.segment(entry.id), entry)
    return replace(entry, id=id)


def kind_of_whole(
    settings: CollectionSettings, shards: int, encodings: int, vectors: Vectors = NO_VECTORS
) -> DenseKind:
    """The dense kind of a collection of so many encodings, whose shards are each on a machine with as much
    memory as this one. vectors: those that have an index, by its kind.
    """
    memory = (settings.dense_memory_bytes or usual_memory_bytes()) * shards
    kind, _ = collection_kind(settings.dense_kind, encodings, settings.dense_dimension, memory, vectors)
    return kind


@contextmanager
def fetched_segment(
    store: ObjectStore, entry: SegmentEntry, settings: CollectionSettings
) -> Iterator[Segment]:
    """A segment of the store, without delete marks, open on this machine as long as the context lasts.

    Raises ObjectMissingError, DamagedObjectError or DamagedIndexError.
    """
    with scratch_folder() as folder:
        layout = CollectionLayout(folder)
        layout.segment(entry.id).mkdir(parents=True)
        for name, file in entry.files.items():
            store.get_file(file_path(file.sha256), layout.segment(entry.id) / name, file.sha256)
        yield Segment.open(layout, replace(entry, deletes=None), settings)
