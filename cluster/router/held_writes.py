"""Writes to a collection that moves to other shards: they wait for these, as long as their requests allow.

The shards that the collection leaves refuse writes from a moment on. What they refused is written to the next
ones once a newer map names them, or to the same ones where the move was given up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tercet.cluster.router.partial_writes import FencedPartsError, ShardedWritten
from tercet.models.representations import Int64
from tercet.service.load.deadlines import Deadline

LONGEST_WAIT_SECONDS = 30.0  # at most, whatever the request allows
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5


class HeldWrites:
    """Those of one request."""

    def __init__(self, renew: Callable[[], None] | None, deadline: Deadline) -> None:
        """renew: has the attempts that follow go to the shards of then; None where no newer map can name
        others. deadline: of the request.
        """
        self._renew = renew
        self._until = min(deadline.moment, time.monotonic() + LONGEST_WAIT_SECONDS)

    def of_keys(
        self,
        keys: Sequence[str],
        places: Callable[[Sequence[str]], Int64],
        attempt: Callable[[Int64], ShardedWritten],
        *,
        holds: bool = True,
    ) -> ShardedWritten:
        """What is done to documents that are placed by keys; only those that were refused come again, so that
        nothing is written over what others wrote meanwhile.

        places: the shard of each key; attempt: writes rows of these, int64[R]; holds: whether the write means
        the same at other shards.
        """
        rows, done, pause_seconds = np.arange(len(keys)), 0, FIRST_PAUSE_SECONDS
        while True:
            try:
                written = attempt(rows)
                return replace(written, documents=written.documents + done)
            except FencedPartsError as fenced:
                done += fenced.documents
                rows = rows[np.isin(places(keys)[rows], sorted(fenced.shards))]
                pause_seconds = self._wait(fenced, pause_seconds, holds=holds)

    def whole(
        self, attempt: Callable[[], ShardedWritten], *, holds: bool = True, adds: bool = False
    ) -> ShardedWritten:
        """What is done again as a whole. adds: whether the shards that did it before count, too."""
        done, pause_seconds = 0, FIRST_PAUSE_SECONDS
        while True:
            try:
                written = attempt()
                return replace(written, documents=written.documents + done)
            except FencedPartsError as fenced:
                done += fenced.documents if adds else 0
                pause_seconds = self._wait(fenced, pause_seconds, holds=holds)

    def _wait(self, fenced: FencedPartsError, pause_seconds: float, *, holds: bool) -> float:
        """Returns after a pause, and how long to wait the next time. Raises the failure where the write is
        not to wait, or there is no time left.
        """
        if self._renew is None or not holds or time.monotonic() + pause_seconds >= self._until:
            raise fenced.failure from None
        time.sleep(pause_seconds)
        self._renew()
        return min(2 * pause_seconds, LONGEST_PAUSE_SECONDS)
