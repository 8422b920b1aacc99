"""Joins published segments, so that there are few, and drops deleted documents from the disk.

Segments of about the same size are joined once there are `width` of them: a document is then copied about
once for each power of that in the collection's size. A segment most of whose documents are deleted is
written anew. Rows are copied as they are stored; nothing is encoded again.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tercet.index.catalog.manifest import SegmentEntry, dense_vectors
from tercet.index.dense.kinds import INDEXED_VECTORS, Vectors
from tercet.index.errors import SearchIndexError
from tercet.index.live.committer import Committer
from tercet.index.live.records import LiveObserver
from tercet.index.publisher import Publisher
from tercet.index.segments.deletes import read_deletes
from tercet.index.segments.parts import rows_in_parts
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.models.representations import Bool, Int64

LARGEST = 250_000  # documents of a joined segment, as of a build's
SPARSE = 0.5  # share of deleted documents from which on a segment is written anew


def to_merge(entries: Sequence[SegmentEntry], width: int) -> list[int]:
    """The ordinals of the segments that are to be merged next; none where all is well."""
    for ordinal, entry in enumerate(entries):
        if entry.documents_kept < (1 - SPARSE) * entry.documents:
            return [ordinal]
    tiers: dict[int, list[int]] = defaultdict(list)
    for ordinal, entry in enumerate(entries):
        if entry.documents_kept <= LARGEST // width:
            tiers[_tier(entry.documents_kept, width)].append(ordinal)
    full = [tier for tier, ordinals in tiers.items() if len(ordinals) >= width]
    return tiers[min(full)][:width] if full else []


def _tier(documents: int, width: int) -> int:
    """How often the number of documents can be divided by the width."""
    tier = 0
    while documents >= width:
        documents //= width
        tier += 1
    return tier


class MergeStoppedError(SearchIndexError):
    """The collection is about to be closed, or merges are put off; all is as before the merge."""


class Pace:
    """How fast a merge goes on, and whether it does: here without a rest, to the end."""

    def rest(self) -> None:
        """Called between pieces of the work, with no lock. Raises MergeStoppedError to end it."""

    def require_going(self) -> None:
        """Called at the publication, for which flushes wait. Raises MergeStoppedError to end it."""


FULL_PACE = Pace()


@dataclass(frozen=True, slots=True)
class _Source:
    """A published segment that is merged: its id, and the rows int64[n] that are taken of it."""

    id: str
    segment: Segment
    rows: Int64


class Merge:
    """The merges of one live collection, one after the other."""

    def __init__(
        self, publisher: Publisher, committer: Committer, observer: LiveObserver, width: int
    ) -> None:
        """width: so many segments of a size are joined."""
        self._width = width
        self._publisher = publisher
        self._committer = committer
        self._observer = observer
        self._merging = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether there are segments to be joined."""
        return bool(to_merge(self._publisher.manifest.segments, self._width))

    def run(self, pace: Pace = FULL_PACE) -> bool:
        """Joins some segments, where it is time; False where nothing was to be done.

        Flushes may publish meanwhile: what was deleted since is marked in the result before it is published.
        Raises MergeStoppedError, OSError, DamagedIndexError or UnforcedPublicationError; then all is as
        before.
        """
        with self._merging:
            started = time.perf_counter()
            with self._publisher.lock:
                settings = self._publisher.settings
                sources, others = self._chosen()
                if not sources:
                    return False
                if not any(len(source.rows) for source in sources):
                    pace.require_going()
                    self._publish(sources, None)
                    return True
            writing = self._publisher.writing(_rows_of(sources), others, INDEXED_VECTORS, settings, pace.rest)
            with writing as (entry, written), self._publisher.lock:
                pace.require_going()
                if self._publisher.settings != settings:
                    return True  # fields were declared, and others are in the place of the sources
                self._publish(sources, (entry, written))
            self._observer.merged(len(written), time.perf_counter() - started)
            return True

    def settle(self) -> None:
        """Returns once no publication is under way; where `Pace.require_going` raises, none begins."""
        with self._publisher.lock:
            pass

    def _chosen(self) -> tuple[list[_Source], Vectors]:
        """What is to be joined, as the current manifest has it, and the dense vectors of other segments."""
        entries = self._publisher.manifest.segments
        ordinals = to_merge(entries, self._width)
        published = self._committer.state.published
        sources = []
        for ordinal in ordinals:
            deleted = read_deletes(self._publisher.layout, entries[ordinal])
            rows = np.setdiff1d(np.arange(entries[ordinal].documents), deleted)
            sources.append(_Source(entries[ordinal].id, published[ordinal], rows))
        others = (entry for ordinal, entry in enumerate(entries) if ordinal not in ordinals)
        return sources, dense_vectors(others)

    def _publish(self, sources: Sequence[_Source], joined: tuple[SegmentEntry, Segment] | None) -> None:
        """Publishes the joined segment, if there is one, in the place of those that it was made of.

        One of them may be gone by now, with all its documents.
        """
        publisher = self._publisher
        manifest = publisher.manifest
        ordinal_of = {entry.id: ordinal for ordinal, entry in enumerate(manifest.segments)}
        ordinals = [ordinal_of.get(source.id) for source in sources]
        entries = [entry for ordinal, entry in enumerate(manifest.segments) if ordinal not in ordinals]
        if joined is not None:
            deleted = [self._deleted_now(*pair) for pair in zip(sources, ordinals, strict=True)]
            entries.append(publisher.marked(joined[0], np.flatnonzero(np.concatenate(deleted))))
        publisher.publish(entries, manifest.ledger_position)
        name, rows = publisher.manifest.name, [source.rows for source in sources]
        written = None if joined is None else joined[1]
        self._committer.change(lambda state: state.merged(ordinals, rows, name, written))
        publisher.remove_former()

    def _deleted_now(self, source: _Source, ordinal: int | None) -> Bool:
        """Which of a source's rows the current manifest does not have any more."""
        if ordinal is None:
            return np.ones(len(source.rows), np.bool_)
        entry = self._publisher.manifest.segments[ordinal]
        return np.isin(source.rows, read_deletes(self._publisher.layout, entry))


def _rows_of(sources: Sequence[_Source]) -> Iterator[DocumentRows]:
    for source in sources:
        yield from rows_in_parts(source.segment, source.rows)
