"""What a server asks of whatever brings it collections that are published elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tercet.service.collections.registry import CollectionRegistry


class Following(Protocol):
    """Collections that are followed: they are served as published, and not written here."""

    @property
    def ready(self) -> bool:
        """Whether there is something to serve: all that is published, or what was followed before."""

    @property
    def silence_seconds(self) -> float:
        """Since it was last known that nothing newer is published."""

    def look(self, collections: CollectionRegistry) -> None:
        """Takes up what is newer; blocks. What fails is logged, and what was there is kept."""

    def ages(self) -> Iterable[tuple[str, float]]:
        """The seconds since the snapshot that is served was published, by collection."""

    def close(self) -> None:
        """Lets others write the collections."""
