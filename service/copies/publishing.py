"""What a server asks of whatever publishes its collections elsewhere, for other servers to follow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tercet.service.collections.registry import CollectionRegistry


class Publishing(Protocol):
    """The server's own collections, published whenever they changed."""

    def look(self, collections: CollectionRegistry) -> None:
        """Publishes what changed; blocks. What fails is logged and counted."""

    def silences(self) -> Iterable[tuple[str, float]]:
        """The seconds since all that was written was last known to be published, by collection."""

    def failures(self) -> Iterable[tuple[str, float]]:
        """The attempts to publish that failed, by collection."""

    def close(self) -> None:
        """Ends what is under way."""
