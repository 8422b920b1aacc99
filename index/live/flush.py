"""Takes what memory holds into a published segment, while writes and searches go on.

The documents in memory are set aside first: later writes go to new segments, and only mark those set aside
as deleted. So the segment is written from rows that do not change, and the manifest is that of one position
of the ledger. What was deleted since is marked again in the segment once it is opened.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from index.catalog.layout import CollectionLayout
from index.catalog.manifest import Manifest, SegmentEntry, segment_id
from index.catalog.publication import Publication
from index.catalog.remains import remove_all_but, remove_unfinished
from index.catalog.settings import CollectionSettings
from index.ledger.ledger import Ledger
from index.live.committer import Committer
from index.live.state import LiveState
from index.segments.deletes import write_deletes
from index.segments.rows import DocumentRows
from index.segments.segment import Segment
from index.segments.writer import SegmentWriter

DOCUMENTS_AT_ONCE = 1_024
TOKENS_AT_ONCE = 262_144


def rows_in_parts(segment: Segment) -> Iterator[DocumentRows]:
    """The documents of a segment that are not deleted, in parts of bounded size."""
    rows = segment.rows_kept()
    ends = np.cumsum(segment.tokens_of(rows))
    start = 0
    while start < len(rows):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + TOKENS_AT_ONCE, "right"))
        stop = min(max(stop, start + 1), start + DOCUMENTS_AT_ONCE)
        yield segment.take(rows[start:stop])
        start = stop


class Flush:
    """The flushes of one live collection, one after the other."""

    def __init__(
        self,
        layout: CollectionLayout,
        settings: CollectionSettings,
        manifest: Manifest | None,
        committer: Committer,
        ledger: Ledger,
    ) -> None:
        """manifest: the current one, None before the first publication."""
        self._layout = layout
        self._settings = settings
        self._manifest = manifest
        self._committer = committer
        self._ledger = ledger
        self._start: LiveState | None = None

    def run(self) -> None:
        """Publishes what was in memory and marked as deleted, then trims the ledger.

        What fails on the way is tried again by the next run, from the same documents; no write is lost, since
        the ledger still has it. Raises OSError, StorageError, DamagedIndexError or UnforcedPublicationError.
        """
        if self._start is None:
            self._start = self._committer.change(LiveState.set_aside)
        start = self._start
        if start.position > (0 if self._manifest is None else self._manifest.ledger_position):
            manifest, opened = self._publish(start)
            self._manifest = manifest
            self._committer.change(lambda state: state.flushed(start, manifest.name, opened))
            self._ledger.trim(manifest.ledger_position)
            remove_all_but(self._layout, manifest)
        self._start = None

    def _publish(self, start: LiveState) -> tuple[Manifest, Segment | None]:
        """The manifest of a state, and the segment of what was set aside in it."""
        for folder in (self._layout.segments, self._layout.manifests):
            folder.mkdir(exist_ok=True)
        remove_unfinished(self._layout)
        name = f"{int(start.name) + 1:06d}"
        former = () if self._manifest is None else self._manifest.segments
        entries = [
            self._marked(entry, segment, name)
            for entry, segment in zip(former, start.published, strict=True)
            if segment.documents_kept
        ]
        opened = None
        if any(segment.documents_kept for segment in start.aside):
            entry = self._write(start, name)
            entries.append(entry)
            opened = Segment.open(self._layout, entry, self._settings)
        manifest = Manifest(name, self._settings.sha256, tuple(entries), start.position)
        Publication(self._layout, self._settings.name, manifest).publish()
        return manifest, opened

    def _marked(self, entry: SegmentEntry, segment: Segment, manifest: str) -> SegmentEntry:
        """The entry of a published segment with all its delete marks."""
        if segment.documents_kept == entry.documents_kept:
            return entry
        deleted = np.setdiff1d(np.arange(len(segment)), segment.rows_kept())
        return replace(entry, deletes=write_deletes(self._layout, entry.id, manifest, deleted))

    def _write(self, start: LiveState, manifest: str) -> SegmentEntry:
        identifier = segment_id(manifest, 0, secrets.token_hex(4))
        encodings = sum(segment.encodings for segment in start.published)
        writer = SegmentWriter(self._layout.segments, identifier, self._settings, encodings)
        try:
            for segment in start.aside:
                for rows in rows_in_parts(segment):
                    writer.append(rows)
            return writer.finish()
        finally:
            writer.close()
