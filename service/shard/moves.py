"""A shard's part in a re-sharding: it refuses writes, publishes what it has, brings what it is to have, or
settles as another part of its collection.
"""

from __future__ import annotations

from contextlib import ExitStack

from tercet.index.catalog.lineage import ShardPart
from tercet.service.collections.registry import CollectionRegistry
from tercet.service.copies.moving import Moved, Moving
from tercet.service.exceptions import InvalidRequestError

UNMERGED_SECONDS = 600.0  # after each publication: longer than it takes until the next or the end


class ShardMoves:
    """Its methods block. collections are this server's own."""

    def __init__(self, collections: CollectionRegistry, moving: Moving | None) -> None:
        self._collections = collections
        self._given = moving

    def fence(self, name: str, version: int) -> int:
        """Has a collection refuse writes; returns its position. Raises as `LiveCollection.fence`, and as
        `CollectionRegistry.writing`.
        """
        with self._collections.writing(name) as live:
            return live.fence(version)

    def receive(self, name: str, folder: str) -> Moved:
        """Fetches the documents that are to come: see `Moving.receiving`."""
        with self._moving.receiving(name, folder) as (_, moved):
            return moved

    def settle(self, name: str, version: int, part: ShardPart, received: str | None) -> int:
        """Has a collection be a part of one over shards, with what it receives from a folder, and take writes
        again; returns its position. Raises as `LiveCollection.settle`.
        """
        with ExitStack() as stack:
            layout = None
            if received is not None:
                layout, _ = stack.enter_context(self._moving.receiving(name, received))
            with self._collections.alone(name) as live:
                position = live.settle(version, part, layout)
        if received is not None:
            self._moving.end_receiving(name)
        return position

    def push(self, name: str, folder: str) -> Moved:
        """Publishes all that is written by now: see `Moving.push`.

        A merge meanwhile would have documents copied again that were copied, at worst while writes are held.
        """
        with self._collections.writing(name) as live:
            live.put_off_merges(UNMERGED_SECONDS)
            live.flush()
        return self._moving.push(self._collections, name, folder)

    def bring(self, name: str, folder: str, version: int) -> Moved:
        """Makes what is published this server's: see `Moving.bring`."""
        return self._moving.bring(self._collections, name, folder, version)

    def keep(self, name: str, version: int) -> None:
        """See `Moving.keep`."""
        self._moving.keep(self._collections, name, version)

    @property
    def _moving(self) -> Moving:
        if self._given is None:
            raise InvalidRequestError(
                "this server knows no object store to publish on and bring from; start it with "
                "snapshot_store (TERCET_SNAPSHOT_STORE), the URL of the build in shards",
                None,
                "unsupported",
            )
        return self._given
