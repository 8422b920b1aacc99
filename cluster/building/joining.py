"""Joins the parts of a shard into its segments, with the dense index of the kind that the whole has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tercet.cluster.objects.opening import open_store
from tercet.cluster.work.executor import Worker
from tercet.cluster.work.records import agreed, recorded
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
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def content(self) -> str:
        """As a piece of work."""
        values = {name: getattr(self, name) for name in ("shard", "segment", "kind")}
        return json.dumps({**values, "parts": [segment_record(part) for part in self.parts]})

    @staticmethod
    def of_content(content: str) -> Group:
        record: dict[str, Any] = json.loads(content)
        parts = tuple(segment_of_record(Record.of(part, Path(record["segment"]))) for part in record["parts"])
        return Group(record["shard"], record["segment"], record["kind"], parts)


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
class Joined:
    """The segment that the group of a name has become."""

    group: str
    segment: SegmentEntry

    @property
    def content(self) -> bytes:
        """The bytes of its record."""
        return json.dumps({"group": self.group, "segment": segment_record(self.segment)}).encode()

    @staticmethod
    def of_content(content: str) -> Joined:
        """Raises DamagedIndexError for another record."""
        record: dict[str, Any] = json.loads(content)
        return Joined(record["group"], segment_of_record(Record.of(record["segment"], Path(record["group"]))))


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

    def __call__(self, piece: str) -> str:
        """The record of the segment that a group has become."""
        group = Group.of_content(piece)
        path = f"segments/{group.name}.json"
        found = recorded(self._build, path)
        if found is None:
            found = agreed(self._build, path, Joined(group.name, self._joined(group)).content)
        return found.decode()

    def _joined(self, group: Group) -> SegmentEntry:
        store = self._store.below(group.shard)
        return write_segment(store, self._rows(group), self._settings, group.kind, group.segment)

    def _rows(self, group: Group) -> Iterator[DocumentRows]:
        settings = replace(self._settings, dense_kind="flat")
        for part in group.parts:
            with fetched_segment(self._build, part, settings) as segment:
                yield from rows_in_parts(segment, np.arange(part.documents))
