"""What a server asks of whatever copies its collections to an object store, and from there, as they move."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tercet.index.catalog.layout import CollectionLayout

if TYPE_CHECKING:
    from tercet.service.collections.registry import CollectionRegistry


@dataclass(frozen=True, slots=True)
class Moved:
    """A snapshot that was published or brought. number: of those at its folder; position: of the last write
    that it holds.
    """

    number: int
    position: int
    documents: int


class Moving(Protocol):
    """Snapshots below the URL of the setting `snapshot_store`. folder: of one shard, below it.

    All raise SnapshotStoreError for what the store or its snapshots are at fault for.
    """

    def push(self, collections: CollectionRegistry, name: str, folder: str) -> Moved:
        """Publishes all that is written of a collection by now."""

    def bring(self, collections: CollectionRegistry, name: str, folder: str, version: int) -> Moved:
        """Makes the newest snapshot the collection of this name; one that was brought from there before is
        replaced, unless it is kept already for this version of the map of shards. Raises CollectionBusyError
        for any other.
        """

    def receiving(self, name: str, folder: str) -> AbstractContextManager[tuple[CollectionLayout, Moved]]:
        """The newest snapshot as a folder of its own, beside the collection of this name, as long as the
        context lasts; what was fetched before is not fetched again.
        """

    def end_receiving(self, name: str) -> None:
        """Removes what was fetched for that."""

    def keep(self, collections: CollectionRegistry, name: str, version: int) -> None:
        """From now on what was brought is a collection of its own, and never replaced. Raises
        CollectionBusyError where nothing was.
        """
