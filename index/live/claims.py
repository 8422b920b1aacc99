"""Ids that other shards of a partitioned collection are about to get documents of.

A router that puts a document claims its id on all other shards, and ends the claims afterwards. A shard that
has the id refuses; another one puts no document of it meanwhile. So of two puts at the same time that give a
new id two partitions one is refused at least: the later claim finds what was put, or is there before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tercet.index.errors import PartitionConflictError
from tercet.index.files.packed_bytes import PackedBytes

CLAIMED_SECONDS = 300.0  # at most: of a router that was killed meanwhile; longer than any put waits


class Claims:
    """Of one collection. Use from one thread at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: in seconds."""
        self._clock = clock
        self._until: dict[bytes, dict[str, float]] = {}  # by id and owner

    def add(self, ids: PackedBytes, owner: str) -> None:
        """Claims ids, and forgets claims that have ended by themselves."""
        now = self._clock()
        for id, owners in tuple(self._until.items()):
            if all(until <= now for until in owners.values()):
                del self._until[id]
        for id in _each(ids):
            self._until.setdefault(id, {})[owner] = now + CLAIMED_SECONDS

    def drop(self, ids: PackedBytes, owner: str) -> None:
        """Ends the claims of an owner."""
        for id in _each(ids):
            owners = self._until.get(id, {})
            owners.pop(owner, None)
            if not owners:
                self._until.pop(id, None)

    def require_none(self, ids: PackedBytes) -> None:
        """Raises PartitionConflictError where one is claimed."""
        now = self._clock()
        for id in _each(ids) if self._until else ():
            if any(until > now for until in self._until.get(id, {}).values()):
                raise PartitionConflictError(
                    f"document {id.decode()!r:.80} is being put into another partition just now; repeat this"
                )


def _each(ids: PackedBytes) -> list[bytes]:
    return [ids[number] for number in range(len(ids))]
