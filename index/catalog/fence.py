"""Whether a collection takes writes: not once a re-sharding has begun to copy the last of them elsewhere.

A fence has the version of the map of shards that it makes way for. Who gives up that version lifts the fence
for it; a call of an earlier one that comes late changes nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tercet.index.catalog.layout import CollectionLayout
from tercet.index.catalog.lineage import Lineage
from tercet.index.errors import (
    CollectionBusyError,
    CollectionFencedError,
    CollectionMovedError,
    DamagedIndexError,
)
from tercet.index.files.content import read_json_object
from tercet.index.files.directory import write_json_atomically

REMEDY = "remove it, where no re-sharding is under way or has moved the collection"


@dataclass(frozen=True, slots=True)
class Fence:
    """version: of the latest re-sharding that asked, 0 for none; closed: whether writes are refused."""

    version: int = 0
    closed: bool = False

    @staticmethod
    def read(layout: CollectionLayout) -> Fence:
        """The fence of a collection. Raises DamagedIndexError."""
        try:
            record = read_json_object(layout.fence, REMEDY)
        except FileNotFoundError:
            return Fence()
        match record:
            case {"version": int(version), "closed": bool(closed)}:
                return Fence(version, closed)
        raise DamagedIndexError(f"{layout.fence} holds no fence; {REMEDY}")

    def write(self, layout: CollectionLayout) -> None:
        """Makes it that of a collection, so that it lasts."""
        write_json_atomically(layout.fence, asdict(self))

    def closing(self, version: int) -> Fence:
        """The one to refuse writes for a version. Raises CollectionBusyError where that was given up, or a
        later one has asked.
        """
        if version < self.version or (version == self.version and not self.closed):
            raise CollectionBusyError(
                f"version {version} of the map of shards was given up, or another re-sharding is under way "
                f"for version {self.version}; see what that was, and run this again"
            )
        return Fence(version, closed=True)

    def lifting(self, version: int) -> Fence:
        """The one to take writes again, as a version was given up. Raises CollectionBusyError where a later
        one has asked.
        """
        if version < self.version:
            raise CollectionBusyError(
                f"a re-sharding for version {self.version} of the map of shards is under way, and version "
                f"{version} was given up; the fence stays"
            )
        return Fence(version)

    def require_open(self, name: str) -> None:
        """Raises CollectionFencedError where writes are refused. name: of the collection."""
        if self.closed:
            raise fenced(name)


def require_part(lineage: Lineage | None, tag: str | None, name: str) -> None:
    """Raises CollectionMovedError where a collection is another part of one over shards than whoever asks
    takes it for. tag: of that part, None of who takes it for none.
    """
    part = None if lineage is None else lineage.part
    if tag is not None and part is not None and part.tag != tag:
        raise CollectionMovedError(
            f"collection {name!r} has other documents here than whoever asks knows of, as it moved to other "
            "shards; nothing was read or written: try again in a moment, at a router that follows the map of "
            "shards"
        )


def fenced(name: str) -> CollectionFencedError:
    """The refusal of a write."""
    return CollectionFencedError(
        f"collection {name!r} moves to other shards, and takes no writes here; nothing was written: try "
        "again in a moment, at a router that follows the map of shards"
    )
