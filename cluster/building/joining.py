"""Joins the parts of a shard into its segments, with the dense index of the kind that the whole has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tercet.cluster.objects.opening import open_store
from tercet.cluster.work.executor import Worker
from tercet.cluster.work.records import once
from tercet.cluster.work.segments import fetched_segment, write_segment
from tercet.index.catalog.layout import FIRST_MANIFEST
from tercet.index.catalog.manifest import SegmentEntry, segment_id, segment_of_record, segment_record
from tercet.index.catalog.records import Record
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.dense.kinds import DenseKind
from tercet.index.segments.parts import rows_in_parts
from tercet.index.segments.rows import DocumentRows
from tercet.index.writer import SegmentLimits

SEGMENT_ENCODINGS = SegmentLimits().documents


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of one shard that become one segment.

    shard: the folder of the shard; segment: the id of what they become; kind: the dense kind of the whole.
    """

    shard: str
    segment: str
    kind: DenseKind
    parts: tuple[SegmentEntry, ...]

    @property
    def name(self) -> str:
        """By what it consists of."""
        described = [self.shard, self.segment, self.kind, [segment_record(part) for part in self.parts]]
        return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def groups_of(
    shard: str,
    parts: Sequence[SegmentEntry],
    kind: DenseKind,
    mark: str,
) -> list[Group]:
    """The parts of a shard, in order, in groups of SEGMENT_ENCODINGS each, or a little more.

    kind: of the whole; mark: what the ids of the segments end with.
    """
    groups: list[list[SegmentEntry]] = []
    room = 0
    for part in parts:
        if room <= 0:
            groups.append([])
            room = SEGMENT_ENCODINGS
        groups[-1].append(part)
        room -= part.encodings
    return [
        Group(shard, segment_id(FIRST_MANIFEST, number, mark), kind, tuple(group))
        for number, group in enumerate(groups)
    ]


@dataclass(frozen=True, slots=True)
class Joining:
    """The work of joining groups. url: of the collection; folder: of the build, below that."""

    url: str
    folder: str
    settings: CollectionSettings

    @property
    def encodes(self) -> bool:
        return False

    def begin(self) -> Worker:
        return GroupJoiner(self)


class GroupJoiner:
    """Joins one group after the other."""

    def __init__(self, work: Joining) -> None:
        self._store = open_store(work.url)
        self._build = self._store.below(work.folder)
        self._settings = work.settings

    def __call__(self, group: Group) -> tuple[str, SegmentEntry]:
        """The name of a group, and the segment that it has become. Raises DamagedIndexError for a record that
        is none.
        """
        name = group.name
        path = f"segments/{name}.json"
        content = once(self._build, path, lambda: json.dumps(segment_record(self._joined(group))).encode())
        return name, segment_of_record(Record.of(json.loads(content), Path(path)))

    def _joined(self, group: Group) -> SegmentEntry:
        store = self._store.below(group.shard)
        return write_segment(store, self._rows(group), self._settings, group.kind, group.segment)

    def _rows(self, group: Group) -> Iterator[DocumentRows]:
        settings = replace(self._settings, dense_kind="flat")
        for part in group.parts:
            with fetched_segment(self._build, part, settings) as segment:
                yield from rows_in_parts(segment, np.arange(part.documents))
