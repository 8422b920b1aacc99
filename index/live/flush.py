"""Takes what memory holds into a published segment, while writes and searches go on.

The documents in memory are set aside first: later writes go to new segments, and only mark those set aside
as deleted. So the segment is written from rows that do not change, and the manifest is that of one position
of the ledger. What was deleted since is marked again in the segment once it is opened.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from tercet.index.catalog.manifest import dense_vectors
from tercet.index.dense.kinds import FLAT_VECTORS
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.committer import Committer
from tercet.index.live.records import LiveObserver
from tercet.index.live.state import LiveState
from tercet.index.publisher import Publisher
from tercet.index.segments.parts import rows_in_parts
from tercet.index.segments.segment import Segment


class Flush:
    """The flushes of one live collection, one after the other."""

    def __init__(
        self, publisher: Publisher, committer: Committer, ledger: Ledger, observer: LiveObserver
    ) -> None:
        self._publisher = publisher
        self._committer = committer
        self._ledger = ledger
        self._observer = observer
        # Whether the ledger has what segments hold: of a process that died before, or of a build.
        self._untrimmed = ledger.trimmed_position < publisher.manifest.ledger_position

    @property
    def is_due(self) -> bool:
        """Whether there is something to do: writes that no segment has, or entries that segments have."""
        return self._untrimmed or self._committer.state.position > self._publisher.manifest.ledger_position

    def run(self) -> int:
        """Publishes what was in memory and marked as deleted, then trims the ledger; returns the position.

        What fails on the way loses no write, since the ledger still has it; the next run tries again. Raises
        OSError, StorageError, DamagedIndexError or UnforcedPublicationError.
        """
        with self._publisher.lock:
            return self.run_locked()

    def run_locked(self) -> int:
        """Flushes and publishes as `run` does, for a caller that holds the publisher's lock."""
        publisher, started = self._publisher, time.perf_counter()
        start = self._committer.change(LiveState.set_aside)
        if start.position == publisher.manifest.ledger_position:
            self._trim()
            return start.position
        with ExitStack() as writing:
            try:
                written = self._publish(start, writing)
            except BaseException:
                self._committer.change(LiveState.take_back)
                raise
            name = publisher.manifest.name
            self._committer.change(lambda state: state.flushed(start, name, written))
        publisher.remove_former()  # first, as a full disk has no room for a trim
        self._observer.flushed(0 if written is None else len(written), time.perf_counter() - started)
        self._untrimmed = True
        self._trim()
        return start.position

    def _trim(self) -> None:
        """Removes from the ledger what segments hold; where that fails, the next run does it."""
        if self._untrimmed:
            self._ledger.trim(self._publisher.manifest.ledger_position)
            self._untrimmed = False

    def _publish(self, start: LiveState, writing: ExitStack) -> Segment | None:
        """Publishes a state; returns the segment of what was set aside in it, None where that was nothing."""
        former = self._publisher.manifest.segments
        entries = [
            self._publisher.marked(entry, segment.rows_deleted())
            for entry, segment in zip(former, start.published, strict=True)
            if segment.documents_kept
        ]
        written = None
        if any(segment.documents_kept for segment in start.aside):
            rows = (part for segment in start.aside for part in rows_in_parts(segment, segment.rows_kept()))
            # Writes wait for a flush, and a merge will index what it leaves to be scanned.
            others, settings = dense_vectors(entries), self._publisher.settings
            writer = self._publisher.writing(rows, others, FLAT_VECTORS + 1, settings)
            entry, written = writing.enter_context(writer)
            entries.append(entry)
        self._publisher.publish(entries, start.position)
        return written
