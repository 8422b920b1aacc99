"""Takes over what was built elsewhere, while documents are written and deleted.

A build or a restored backup is a collection folder of its own. Its segments are linked into this collection
and published in the place of what was there when the build began; what was written or deleted since then
stays written and deleted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.manifest import Manifest, SegmentEntry
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.store import encode_id
from tercet.index.errors import CollectionBusyError, DamagedIndexError, FingerprintMismatchError
from tercet.index.files.content import missing
from tercet.index.files.directory import link_folder
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.committer import Committer
from tercet.index.live.flush import Flush
from tercet.index.live.operations import Nothing
from tercet.index.live.state import LiveState
from tercet.index.publisher import Publisher
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.later_columns import with_later_columns
from tercet.index.segments.segment import Segment
from tercet.models.representations import Bool, Int64

AdoptionMode = Literal["replace", "upsert"]


@dataclass(frozen=True, slots=True)
class Build:
    """A build under way, from its beginning until it is adopted or given up; used as a context manager.

    since: the position at which it began.
    """

    since: int
    close: Callable[[], None]

    def __enter__(self) -> Build:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Adopted:
    """A segment that is taken over, without what was deleted where it comes from.

    marks: bool[N], which of its documents are deleted in the manifest to come.
    """

    entry: SegmentEntry
    segment: Segment
    marks: Bool

    def written_at(self, position: int) -> Adopted:
        """As if all its documents had been written at a position."""
        entry = replace(self.entry, written_at=position)
        return Adopted(entry, self.segment.written_at(position), self.marks)


@dataclass(frozen=True, slots=True)
class _Former:
    """A published segment. dropped: bool[N], documents whose place is taken; marks: bool[N], those that are
    deleted in the manifest to come; later: bool[N], documents that were written since the build began.
    """

    entry: SegmentEntry
    segment: Segment
    dropped: Bool
    marks: Bool
    later: Bool


class Adoption:
    """The builds of one live collection, of which one at a time may be under way."""

    def __init__(self, publisher: Publisher, committer: Committer, flush: Flush, ledger: Ledger) -> None:
        self._ledger = ledger
        self._publisher = publisher
        self._committer = committer
        self._flush = flush
        self._adopting = threading.Lock()  # deletes are remembered as long as an adoption needs them
        self._build: Build | None = None

    def begin(self) -> Build:
        """Flushes, and takes note of deletes from then on.

        Raises CollectionBusyError where another build is under way, CollectionFencedError, and what a flush
        raises.
        """
        state = self._committer.change(_watched)
        try:
            self._committer.require_open()
            self._flush.run()
        except BaseException:
            self._end()
            raise
        self._build = Build(state.position, self._end)
        return self._build

    def run(
        self,
        build: Build,
        source: CollectionLayout,
        mode: AdoptionMode,
        mark: str | None,
        superseded: Sequence[str] = (),
    ) -> str:
        """Publishes the current snapshot of another folder; returns the name of the manifest.

        replace: in the place of all documents that were there when the build began, whose writes are carried
        out again where they are repeated; upsert: of those with the same ids, and of those of `superseded`.
        The folder stays as it is. mark: what the names of the segments end with.

        Raises FingerprintMismatchError where its settings are others, CollectionBusyError for a build that
        was closed, DamagedIndexError, OSError or UnforcedPublicationError; after any but the last all is as
        before.
        """
        with self._adopting:
            if self._build is not build:
                raise CollectionBusyError(
                    f"the build of collection {self._publisher.settings.name!r} was closed before it was "
                    "adopted; nothing was published: build again"
                )
            return self._adopt(build, source, mode, mark, superseded)

    def _adopt(
        self,
        build: Build,
        source: CollectionLayout,
        mode: AdoptionMode,
        mark: str | None,
        superseded: Sequence[str],
    ) -> str:
        publisher = self._publisher
        with self.linked(source, mark) as opened, publisher.lock:
            flushed = self._flush.run_locked()
            position = self._committer.submit(Nothing()).result().position
            if mode == "replace":  # before it takes back what they acknowledge, should it end in between
                self._ledger.forget_answers(build.since)
            state = self._committer.state
            replaced = None
            if mode == "upsert":
                kept = [built.segment.documents.ids.gather(built.segment.rows_kept()) for built in opened]
                replaced = PackedBytes.concatenate([*kept, PackedBytes.of(list(map(encode_id, superseded)))])
            formers = [
                self._former(entry, segment, build.since, replaced)
                for entry, segment in zip(publisher.manifest.segments, state.published, strict=True)
            ]
            written = [
                former.segment.documents.ids.gather(np.flatnonzero(former.later)) for former in formers
            ]
            overridden = PackedBytes.concatenate([*written, *state.deleted_after(build.since, flushed)])
            adopted = [_overridden(built, overridden, position) for built in opened]
            self._publish(formers, adopted, flushed)
            name = publisher.manifest.name
            self._committer.change(
                lambda now: now.adopted(
                    [None if former.marks.all() else former.dropped for former in formers],
                    [built.segment for built in adopted if not built.marks.all()],
                    flushed,
                    name,
                )
            )
            publisher.remove_former()
            return name

    @contextmanager
    def linked(self, source: CollectionLayout, mark: str | None = None) -> Iterator[list[Adopted]]:
        """The segments of another folder's current snapshot, linked into the collection under names of its
        own, and opened; their files stay while the context lasts. Raises as `run`.
        """
        publisher = self._publisher
        settings, entries = _entries_of(source, publisher.settings)
        with publisher.naming(len(entries), mark) as ids:
            linked = [self._linked(source, settings, *pair) for pair in zip(entries, ids, strict=True)]
            yield [_opened(publisher, source, *pair) for pair in zip(linked, entries, strict=True)]

    def _end(self) -> None:
        """Forgets deletes, once no adoption is under way."""
        with self._adopting:
            self._build = None
            self._committer.change(lambda state: replace(state, deleted=None))

    def _linked(
        self, source: CollectionLayout, built: CollectionSettings, entry: SegmentEntry, id: str
    ) -> SegmentEntry:
        """A segment under this id in the collection, with columns of all its fields.

        built: the settings that it was made with.
        """
        settings, target = self._publisher.settings, self._publisher.layout
        if built.fields.keys() != settings.fields.keys():  # fields were declared since
            segment = Segment.open(source, entry, built)
            return with_later_columns(source, entry, segment, built, target, id, settings)
        link_folder(source.segment(entry.id), target.segment(id), sorted(entry.files))
        fields = entry.fields
        if settings.later_fields and fields is None:  # whose first ones are others than the collection's
            fields = tuple(built.first_fields)
        return replace(entry, id=id, deletes=None, fields=fields)

    def _former(
        self,
        entry: SegmentEntry,
        segment: Segment,
        since: int,
        replaced: PackedBytes | None,
    ) -> _Former:
        """replaced: ids; None for all."""
        later = segment.positions > since
        dropped = np.full(len(segment), replaced is None)
        if replaced is not None:
            rows = segment.documents.find_all(replaced)
            dropped[rows[rows >= 0]] = True
        dropped &= ~later
        marks = dropped.copy()
        marks[read_deletes(self._publisher.layout, entry)] = True
        return _Former(entry, segment, dropped, marks, later)

    def _publish(self, formers: Sequence[_Former], adopted: Sequence[Adopted], flushed: int) -> None:
        segments = [(segment.entry, segment.marks) for segment in formers]
        segments += [(segment.entry, segment.marks) for segment in adopted]
        publisher = self._publisher
        entries = [
            publisher.marked(entry, np.flatnonzero(marks)) for entry, marks in segments if not marks.all()
        ]
        publisher.publish(entries, flushed)


def _watched(state: LiveState) -> LiveState:
    state.require_no_build("wait for its end")
    return replace(state, deleted=())


def _entries_of(
    source: CollectionLayout, settings: CollectionSettings
) -> tuple[CollectionSettings, tuple[SegmentEntry, ...]]:
    """The settings of a folder, which may lack fields, and the segments of its current snapshot."""
    try:
        built = CollectionSettings.read(source.settings)
    except FileNotFoundError as error:
        raise missing(source.settings) from error
    present = {name: kind for name, kind in settings.fields.items() if name in built.fields}
    if replace(built, name=settings.name) != replace(settings, fields=present, later_fields=()):
        raise FingerprintMismatchError(
            f"what was built has other settings than collection {settings.name!r} (encoder "
            f"{built.fingerprint}, not {settings.fingerprint}, or another dense kind, codec, or fields); "
            "restore it under a new name, or build it again"
        )
    name = source.read_current()
    if name is None:
        raise DamagedIndexError(f"{source.folder} has no published snapshot; build it again")
    return built, Manifest.read(source.manifest(name)).segments


def _opened(
    publisher: Publisher, source: CollectionLayout, linked: SegmentEntry, entry: SegmentEntry
) -> Adopted:
    """A linked segment, opened as readers will."""
    deleted: Int64 = read_deletes(source, entry)
    marks = np.zeros(entry.documents, np.bool_)
    marks[deleted] = True
    return Adopted(linked, publisher.open(linked).without(deleted), marks)


def _overridden(adopted: Adopted, ids: PackedBytes, position: int) -> Adopted:
    """Written at this position, without the documents of these ids."""
    rows = adopted.segment.find_all(ids)
    rows = np.unique(rows[rows >= 0])
    marks = adopted.marks.copy()
    marks[rows] = True
    return Adopted(adopted.entry, adopted.segment.without(rows), marks).written_at(position)
