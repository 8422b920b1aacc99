"""Joins published segments, so that there are few, and drops deleted documents from the disk.

Segments of about the same size are joined once there are `WIDTH` of them: a document is then copied about
once for each power of WIDTH in the collection's size. A segment most of whose documents are deleted is
written anew. Rows are copied as they are stored; nothing is encoded again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from index.catalog.manifest import SegmentEntry
from index.live.committer import Committer
from index.live.parts import rows_in_parts
from index.live.publisher import Publisher
from index.segments.deletes import read_deletes

WIDTH = 8
LARGEST = 250_000  # documents of a joined segment, as of a build's
SPARSE = 0.5  # share of deleted documents from which on a segment is written anew


def to_merge(entries: Sequence[SegmentEntry], width: int = WIDTH, largest: int = LARGEST) -> list[int]:
    """The places of the segments that are to be joined next; none where all is well."""
    for place, entry in enumerate(entries):
        if entry.documents_kept < (1 - SPARSE) * entry.documents:
            return [place]
    tiers: dict[int, list[int]] = defaultdict(list)
    for place, entry in enumerate(entries):
        if entry.documents_kept <= largest // width:
            tiers[_tier(entry.documents_kept, width)].append(place)
    full = [tier for tier, places in tiers.items() if len(places) >= width]
    return tiers[min(full)][:width] if full else []


def _tier(documents: int, width: int) -> int:
    """How often the number of documents can be divided by the width."""
    tier = 0
    while documents >= width:
        documents //= width
        tier += 1
    return tier


class Merge:
    """The merges of one live collection, one after the other."""

    def __init__(self, publisher: Publisher, committer: Committer) -> None:
        self._publisher = publisher
        self._committer = committer

    def run(self, width: int = WIDTH) -> bool:
        """Joins some segments, where it is time; False where nothing was to be done.

        The joined segment holds what the current manifest does, whatever was deleted since; that is marked in
        it again. Raises OSError, DamagedIndexError or UnforcedPublicationError; then all is as before.
        """
        publisher = self._publisher
        manifest = publisher.manifest
        places = to_merge(manifest.segments, width)
        if not places:
            return False
        segments = [self._committer.state.published[place] for place in places]
        rows = [
            np.setdiff1d(np.arange(len(segment)), read_deletes(publisher.layout, manifest.segments[place]))
            for place, segment in zip(places, segments, strict=True)
        ]
        parts = (
            part
            for segment, kept in zip(segments, rows, strict=True)
            for part in rows_in_parts(segment, kept)
        )
        others = [entry for place, entry in enumerate(manifest.segments) if place not in places]
        entry, written = publisher.write(parts, sum(each.windows or each.documents for each in others))
        publisher.publish([*others, entry], manifest.ledger_position)
        name = publisher.manifest.name
        self._committer.change(lambda state: state.merged(places, rows, name, written))
        publisher.remove_former()
        return True
