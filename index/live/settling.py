"""Makes a live collection another part of a collection over shards, at the end of a re-sharding.

What it has of other shards' buckets goes, and what it received of its own comes, in one step for searches.
Nothing of what stays is written again. On the disk the part is one of no buckets meanwhile, so that after a
crash in between no router takes it for either; the re-sharding's next run goes on.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from tercet.index.catalog.fence import Fence
from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage, ShardPart
from tercet.index.catalog.manifest import SegmentEntry
from tercet.index.documents.partitions import placing_keys
from tercet.index.errors import CollectionBusyError
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.ledger import Ledger
from tercet.index.live.adoption import Adopted, Adoption
from tercet.index.live.committer import Committer
from tercet.index.live.flush import Flush
from tercet.index.publisher import Publisher
from tercet.index.segments.segment import Segment
from tercet.models.representations import Bool


class Settling:
    """The changes of one live collection's part."""

    def __init__(
        self, publisher: Publisher, committer: Committer, flush: Flush, ledger: Ledger, adoption: Adoption
    ) -> None:
        self._publisher = publisher
        self._committer = committer
        self._flush = flush
        self._ledger = ledger
        self._adoption = adoption

    def run(self, version: int, part: ShardPart, received: CollectionLayout | None) -> int:
        """Takes writes again, as this part; returns the position. Where it is this part already, nothing else
        changes.

        version: of the map of shards that is in force; part: with any id of the collection, whose parts keep
        theirs; received: a collection folder with the documents that come, whose files are linked. Repeats
        of writes under their keys are carried out again. Raises CollectionBusyError as `Fence.lifting`, or
        where the collection has not refused writes for this; what an adoption raises, too. Nobody may write
        meanwhile.
        """
        publisher, committer = self._publisher, self._committer
        lineage = committer.state.settings.lineage
        present = None if lineage is None else lineage.part
        changes = present is not None and replace(part, collection=present.collection) != present
        with ExitStack() as stack:
            adopted: list[Adopted] = []
            if changes and received is not None:
                adopted = stack.enter_context(self._adoption.linked(received))
            with publisher.lock:
                fence = Fence.read(publisher.layout)
                lifted = fence.lifting(version)
                if changes and lineage is not None:
                    if not fence.closed:
                        raise CollectionBusyError(
                            f"collection {publisher.settings.name!r} takes writes, so it is not made another "
                            "part of a collection over shards; run the re-sharding again"
                        )
                    self._change(lineage, part, adopted)
                lifted.write(publisher.layout)
                committer.lift()
                return committer.state.position

    def _change(self, lineage: Lineage, part: ShardPart, adopted: list[Adopted]) -> None:
        publisher, committer = self._publisher, self._committer
        assert lineage.part is not None  # noqa: S101 - else nothing changes
        part = replace(part, collection=lineage.part.collection)
        flushed = self._flush.run_locked()
        published = committer.state.published
        ids = PackedBytes.concatenate(
            [one.segment.documents.ids.gather(one.segment.rows_kept()) for one in adopted]
        )
        partitioned = publisher.settings.partitioned
        dropped = [_dropped(segment, part, ids, partitioned=partitioned) for segment in published]
        marks = [gone | ~_kept(segment) for gone, segment in zip(dropped, published, strict=True)]
        own = [one.written_at(flushed) for one in adopted]
        former = list(zip(publisher.manifest.segments, marks, strict=True))
        former += [(one.entry, one.marks) for one in own]
        entries: list[SegmentEntry] = [
            publisher.marked(entry, np.flatnonzero(deleted)) for entry, deleted in former if not deleted.all()
        ]
        self._write(replace(lineage, part=replace(part, buckets=())))
        publisher.publish(entries, flushed)
        try:
            self._write(replace(lineage, part=part))
            publisher.publish(entries, flushed)  # so that readers of other processes and followers notice
        finally:
            settings, name = publisher.settings, publisher.manifest.name
            committer.change(
                lambda now: replace(
                    now.adopted(
                        [
                            None if deleted.all() else gone
                            for gone, deleted in zip(dropped, marks, strict=True)
                        ],
                        [one.segment for one in own if not one.marks.all()],
                        flushed,
                        name,
                    ),
                    settings=settings,
                )
            )
        self._ledger.forget_answers(flushed)
        publisher.remove_former()

    def _write(self, lineage: Lineage) -> None:
        publisher = self._publisher
        lineage.write(publisher.layout.folder)
        publisher.settings = replace(publisher.settings, lineage=lineage)


def _kept(segment: Segment) -> Bool:
    return np.ones(len(segment), np.bool_) if segment.kept is None else segment.kept


def _dropped(segment: Segment, part: ShardPart, received: PackedBytes, *, partitioned: bool) -> Bool:
    """The documents of a segment that are not of the part, or were received: bool[N]."""
    keys = placing_keys(segment.documents.ids, segment.columns, partitioned=partitioned)
    dropped = ~part.holds(keys)
    rows = segment.documents.find_all(received)
    dropped[rows[rows >= 0]] = True
    return dropped
