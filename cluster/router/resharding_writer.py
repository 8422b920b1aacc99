"""Writes to a collection that moves to other shards: they wait for these, as long as their requests allow.

The shards that the collection leaves refuse writes from a moment on. What they refused is written to the next
ones once a newer map names them, or to the same ones where the move was given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tercet.cluster.router.writer import FencedPartsError, ShardedWriter, ShardedWritten
from tercet.cluster.shards.positions import Positions
from tercet.index.candidates import Document
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType
from tercet.index.live.records import WriteKey
from tercet.index.windows.store import DocumentWindows
from tercet.models.representations import Int64, Representations
from tercet.service.load.deadlines import Deadline

LONGEST_WAIT_SECONDS = 30.0  # at most, whatever the request allows
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5


class ReshardingWriter:
    """In the place of a `ShardedWriter`, for one request; see there."""

    def __init__(
        self,
        writer: ShardedWriter,
        newest: Callable[[], ShardedWriter],
        deadline: Deadline,
        *,
        holds: bool,
    ) -> None:
        """newest: gives the writer over the shards of then; deadline: of the request; holds: whether a newer
        map can name other shards.
        """
        self._newest = newest
        self._until = min(deadline.moment, time.monotonic() + LONGEST_WAIT_SECONDS)
        self._holds = holds
        self._writer = writer

    @property
    def settings(self) -> CollectionSettings:
        """What was fixed when the collection was created, with the fields declared since."""
        return self._writer.settings

    def put(
        self,
        documents: Sequence[Document],
        representations: Representations,
        windows: DocumentWindows | None = None,
        *,
        if_position: Positions | None = None,
        key: WriteKey | None = None,
        tokens: int = 0,
    ) -> ShardedWritten:
        """Adds or replaces documents."""

        def attempt(writer: ShardedWriter, rows: Int64) -> ShardedWritten:
            return writer.put(
                documents,
                representations,
                windows,
                rows=rows,
                if_position=if_position,
                key=key,
                tokens=tokens,
            )

        return self._of_keys(self._writer.keys(documents), attempt, holds=if_position is None)

    def delete(
        self, ids: Sequence[str], *, partition: str | None = None, key: WriteKey | None = None
    ) -> ShardedWritten:
        """Removes documents."""
        if self.settings.partitioned:  # any shard may have them
            return self._whole(lambda writer: writer.delete(ids, partition=partition, key=key), adds=True)
        return self._of_keys(
            ids,
            lambda writer, rows: writer.delete(
                [ids[row] for row in rows.tolist()], partition=partition, key=key
            ),
        )

    def delete_matching(self, filter: Filter, *, key: WriteKey | None = None) -> ShardedWritten:
        """Removes the documents that a filter allows."""
        return self._whole(lambda writer: writer.delete_matching(filter, key=key), adds=True)

    def update(
        self,
        which: Sequence[str] | Filter,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        partition: str | None = None,
        key: WriteKey | None = None,
    ) -> ShardedWritten:
        """Changes the metadata of documents."""
        if isinstance(which, Filter) or self.settings.partitioned:
            return self._whole(
                lambda writer: writer.update(which, metadata, merge=merge, partition=partition, key=key)
            )
        return self._of_keys(
            which,
            lambda writer, rows: writer.update(
                [which[row] for row in rows.tolist()], metadata, merge=merge, partition=partition, key=key
            ),
        )

    def patch(
        self,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        if_position: Positions | None = None,
        key: WriteKey | None = None,
    ) -> ShardedWritten:
        """Replaces a document's metadata, or merges this into it."""
        return self._whole(
            lambda writer: writer.patch(id, metadata, merge=merge, if_position=if_position, key=key),
            holds=if_position is None,
        )

    def written_under(self, key: WriteKey) -> None:
        """Always None: each shard knows its keys."""

    def declare(self, fields: Mapping[str, FieldType]) -> CollectionSettings:
        """Declares metadata fields in every shard; that does not wait."""
        return self._writer.declare(fields)

    def begin_merge(self) -> None:
        """Has every shard flush and merge."""
        self._writer.begin_merge()

    def _of_keys(
        self,
        keys: Sequence[str],
        attempt: Callable[[ShardedWriter, Int64], ShardedWritten],
        *,
        holds: bool = True,
    ) -> ShardedWritten:
        """What is done to documents that are placed by keys; only those that were refused come again, so that
        nothing is written over what others wrote meanwhile.

        holds: whether the write means the same at other shards.
        """
        rows, done, pause_seconds = np.arange(len(keys)), 0, FIRST_PAUSE_SECONDS
        while True:
            try:
                written = attempt(self._writer, rows)
                return replace(written, documents=written.documents + done)
            except FencedPartsError as fenced:
                done += fenced.documents
                shards = self._writer.places(keys)
                rows = rows[np.isin(shards[rows], sorted(fenced.shards))]
                pause_seconds = self._wait(fenced, pause_seconds, holds=holds)

    def _whole(
        self,
        attempt: Callable[[ShardedWriter], ShardedWritten],
        *,
        holds: bool = True,
        adds: bool = False,
    ) -> ShardedWritten:
        """What is done again as a whole. adds: whether the shards that did it before count, too."""
        done, pause_seconds = 0, FIRST_PAUSE_SECONDS
        while True:
            try:
                written = attempt(self._writer)
                return replace(written, documents=written.documents + done)
            except FencedPartsError as fenced:
                done += fenced.documents if adds else 0
                pause_seconds = self._wait(fenced, pause_seconds, holds=holds)

    def _wait(self, fenced: FencedPartsError, pause_seconds: float, *, holds: bool) -> float:
        """Returns after a pause, with the writer of then, and how long to wait the next time. Raises the
        failure where the write is not to wait, or there is no time left.
        """
        if not (self._holds and holds) or time.monotonic() + pause_seconds >= self._until:
            raise fenced.failure from None
        time.sleep(pause_seconds)
        self._writer = self._newest()
        return min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
