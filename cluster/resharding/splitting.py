"""Divides the documents of a published segment among shards: one segment for each that gets some.

Rows go over as they are stored, deleted ones too, in order. So what is deleted later is marked in the new
segments without writing them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tercet.cluster.objects.opening import open_store
from tercet.cluster.shards.placement import Placement
from tercet.cluster.snapshots.published import file_path
from tercet.cluster.work.executor import Worker
from tercet.cluster.work.records import agreed, once, recorded
from tercet.cluster.work.segments import fetched_segment, send_file, write_segment
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import FileEntry, SegmentEntry, segment_of_record, segment_record
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import DenseKind
from tercet.index.documents.partitions import placing_keys
from tercet.index.files.scratch import scratch_folder
from tercet.index.segments.deletes import read_deletes, write_deletes
from tercet.index.segments.parts import rows_in_parts
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64

SPLITS = "splits"
ROW_SHARD = np.dtype("<u4")  # the new shard of a row, as it is recorded


@dataclass(frozen=True, slots=True)
class Source:
    """A segment that a shard has published. shard: the folder of the shard, below the collection's URL."""

    shard: str
    segment: SegmentEntry

    @property
    def rows_name(self) -> str:
        """By what it was written with."""
        written = segment_record(replace(self.segment, deletes=None))
        return hashlib.sha256(json.dumps([self.shard, written]).encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """The same, and by what is deleted of it."""
        deletes = self.segment.deletes
        return self.rows_name if deletes is None else f"{self.rows_name}-{deletes.sha256[:16]}"


@dataclass(frozen=True, slots=True)
class Split:
    """What a source of a name has become in each shard, None where none of its documents comes to it."""

    source: str
    segments: tuple[SegmentEntry | None, ...]

    @property
    def content(self) -> bytes:
        """The bytes of its record."""
        records = [None if each is None else segment_record(each) for each in self.segments]
        return json.dumps({"source": self.source, "segments": records}).encode()

    @staticmethod
    def of_content(content: bytes) -> Split:
        """Raises DamagedIndexError for another record."""
        record: dict[str, Any] = json.loads(content)
        path = Path(split_path(record["source"]))
        segments = (
            None if each is None else segment_of_record(Record.of(each, path)) for each in record["segments"]
        )
        return Split(record["source"], tuple(segments))


def split_path(name: str) -> str:
    """Where the record of a source's split lies."""
    return f"{SPLITS}/{name}.json"


@dataclass(frozen=True, slots=True)
class Splitting:
    """The work of dividing sources. url: of the collection; folder: of the work, below that; shards: a folder
    for what comes to each shard; placement: over these; staying: by the folder of a present shard, which of
    them it goes on as, so that its own documents stay where they are; present: the settings that the sources
    are of, settings: those of the new ones; kind: the dense kind of the whole; mark: what the new segments'
    ids end with.
    """

    url: str
    folder: str
    shards: tuple[str, ...]
    placement: Placement
    staying: Mapping[str, int]
    present: CollectionSettings
    settings: CollectionSettings
    kind: DenseKind
    mark: str

    @property
    def encodes(self) -> bool:
        return False

    def begin(self) -> Worker:
        return Splitter(self)


class Splitter:
    """Divides one source after the other."""

    def __init__(self, work: Splitting) -> None:
        self._work = work
        self._store = open_store(work.url)
        self._records = self._store.below(work.folder)

    def __call__(self, source: Source) -> Split:
        """What a source has become."""
        path = split_path(source.name)
        return Split.of_content(once(self._records, path, lambda: self._split(source).content))

    def _split(self, source: Source) -> Split:
        path, rows_path = split_path(source.rows_name), f"{SPLITS}/{source.rows_name}.rows"
        found, rows = recorded(self._records, path), recorded(self._records, rows_path)
        if found is None or rows is None:
            store = self._store.below(source.shard)
            with fetched_segment(store, source.segment, self._work.present) as segment:
                shards = self._shards_of(segment)
                agreed(self._records, rows_path, shards.astype(ROW_SHARD).tobytes())
                if found is None:
                    found = agreed(self._records, path, self._divided(source, segment, shards).content)
        else:  # new marks alone: the segment itself is not fetched again
            shards = np.frombuffer(rows, ROW_SHARD).astype(np.int64)
        split = Split.of_content(found)
        if source.segment.deletes is None:
            return split
        return self._marked(source, split, shards)

    def _shards_of(self, segment: Segment) -> Int64:
        """The new shard of each row, int64[N]."""
        partitioned = self._work.settings.partitioned
        keys = placing_keys(segment.documents.ids, segment.columns, partitioned=partitioned)
        return self._work.placement.shards_of([key.decode() for key in keys])

    def _divided(self, source: Source, segment: Segment, shards: Int64) -> Split:
        entries = (self._written(source, segment, shards, number) for number in range(len(self._work.shards)))
        return Split(source.rows_name, tuple(entries))

    def _written(self, source: Source, segment: Segment, shards: Int64, number: int) -> SegmentEntry | None:
        """The rows of one new shard as a segment, which is uploaded."""
        rows = np.flatnonzero(shards == number)
        if not len(rows) or self._work.staying.get(source.shard) == number:
            return None
        store, id = self._store.below(self._work.shards[number]), f"{source.rows_name}-{self._work.mark}"
        return write_segment(store, rows_in_parts(segment, rows), self._work.settings, self._work.kind, id)

    def _marked(self, source: Source, split: Split, shards: Int64) -> Split:
        """The same with the marks of what is deleted by now; without segments of which all is."""
        with scratch_folder() as folder:
            layout = CollectionLayout(folder)
            deleted = self._deleted(source, layout)
            marks = np.zeros(len(shards), np.bool_)
            marks[deleted] = True
            entries: list[SegmentEntry | None] = []
            for number, entry in enumerate(split.segments):
                rows = np.flatnonzero(marks[shards == number])
                if entry is None or len(rows) == entry.documents:
                    entries.append(None)
                elif not len(rows):
                    entries.append(entry)
                else:
                    tag = source.name.rpartition("-")[2]
                    written = write_deletes(layout, entry.id, tag, rows)
                    send_file(
                        self._store.below(self._work.shards[number]),
                        layout.deletes / written.file,
                        FileEntry(written.size_bytes, written.sha256),
                    )
                    entries.append(replace(entry, deletes=written))
        return Split(source.name, tuple(entries))

    def _deleted(self, source: Source, layout: CollectionLayout) -> Int64:
        """The rows of a source that are deleted, ascending."""
        deletes = source.segment.deletes
        if deletes is None:
            return np.empty(0, np.int64)
        layout.deletes.mkdir()
        store = self._store.below(source.shard)
        store.get_file(file_path(deletes.sha256), layout.deletes / deletes.file, deletes.sha256)
        return read_deletes(layout, source.segment)
