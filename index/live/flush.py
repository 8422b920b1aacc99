"""Takes what memory holds into a published segment, while writes and searches go on.

The documents in memory are set aside first: later writes go to new segments, and only mark those set aside
as deleted. So the segment is written from rows that do not change, and the manifest is that of one position
of the ledger. What was deleted since is marked again in the segment once it is opened.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from index.catalog.manifest import SegmentEntry
from index.ledger.ledger import Ledger
from index.live.committer import Committer
from index.live.parts import rows_in_parts
from index.live.publisher import Publisher
from index.live.state import LiveState
from index.segments.deletes import write_deletes
from index.segments.segment import Segment


class Flush:
    """The flushes of one live collection, one after the other."""

    def __init__(self, publisher: Publisher, committer: Committer, ledger: Ledger) -> None:
        self._publisher = publisher
        self._committer = committer
        self._ledger = ledger
        self._start: LiveState | None = None

    def run(self) -> None:
        """Publishes what was in memory and marked as deleted, then trims the ledger.

        What fails on the way is tried again by the next run, from the same documents; no write is lost, since
        the ledger still has it. Raises OSError, StorageError, DamagedIndexError or UnforcedPublicationError.
        """
        publisher = self._publisher
        if self._start is None:
            self._start = self._committer.change(LiveState.set_aside)
        start = self._start
        if start.position > publisher.manifest.ledger_position:
            written = self._publish(start)
            name = publisher.manifest.name
            self._committer.change(lambda state: state.flushed(start, name, written))
            self._ledger.trim(start.position)
            publisher.remove_former()
        self._start = None

    def _publish(self, start: LiveState) -> Segment | None:
        """Publishes a state; returns the segment of what was set aside in it, None where that was nothing."""
        former = self._publisher.manifest.segments
        entries = [
            self._marked(entry, segment)
            for entry, segment in zip(former, start.published, strict=True)
            if segment.documents_kept
        ]
        written = None
        if any(segment.documents_kept for segment in start.aside):
            rows = (part for each in start.aside for part in rows_in_parts(each, each.rows_kept()))
            encodings = sum(segment.encodings for segment in start.published)
            entry, written = self._publisher.write(rows, encodings)
            entries.append(entry)
        self._publisher.publish(entries, start.position)
        return written

    def _marked(self, entry: SegmentEntry, segment: Segment) -> SegmentEntry:
        """The entry of a published segment with all its delete marks."""
        if segment.documents_kept == entry.documents_kept:
            return entry
        deleted = np.setdiff1d(np.arange(len(segment)), segment.rows_kept())
        layout, name = self._publisher.layout, self._publisher.next_name
        return replace(entry, deletes=write_deletes(layout, entry.id, name, deleted))
