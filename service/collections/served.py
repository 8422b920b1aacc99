"""The collections of a server, whether it has them itself or shards do: what requests and its life need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.live.statistics import CollectionCounts
from tercet.service.collections.positions import Position
from tercet.service.collections.readable import (
    CollectionDescription,
    NamedAliases,
    ReadableSnapshot,
    SearchTarget,
)
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.collections.target import WritableCollections
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading

Part = TypeVar("Part")


class ServedBackup(Protocol):
    """See `tercet.index.backups.records.Backup`; a record of its slots."""

    @property
    def id(self) -> str: ...

    @property
    def collection(self) -> str: ...

    @property
    def position(self) -> Position: ...

    @property
    def documents(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def created(self) -> str: ...


class ServedStatistics(Protocol):
    """See `tercet.index.live.statistics.CollectionStatistics`."""

    @property
    def documents(self) -> int: ...

    @property
    def deleted(self) -> int: ...

    @property
    def segments(self) -> int: ...

    @property
    def part_bytes(self) -> Mapping[str, int]: ...

    @property
    def memory_documents(self) -> int: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def ledger_entries(self) -> int: ...

    @property
    def ledger_bytes(self) -> int: ...

    @property
    def position(self) -> Position: ...

    @property
    def flushed_position(self) -> Position: ...

    @property
    def flushing(self) -> bool: ...

    @property
    def merging(self) -> bool: ...


class Catalogue(Protocol):
    """Which collections there are, and what they are. Methods block, so they are for threads."""

    @property
    def aliases(self) -> NamedAliases: ...

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]: ...

    def names(self) -> list[str]: ...

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]: ...

    def describe(self, name: str) -> CollectionDescription: ...

    def statistics(self, name: str) -> ServedStatistics: ...

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]: ...

    def checkpoints(self) -> dict[str, str]: ...


class Reads(Protocol):
    """Collections as requests read them."""

    @property
    def looking_pool(self) -> Pool: ...

    @property
    def search_threads(self) -> int: ...

    async def open(self, name: str, options: Reading = ANY_TIME) -> ReadableSnapshot: ...

    async def open_with_defaults(
        self, name: str, options: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[ReadableSnapshot]: ...


class Lifecycle(Protocol):
    """What is done at the start, from time to time, and at the end. Methods block."""

    def open_written(self) -> None: ...

    def release_superseded(self) -> None: ...

    def close(self) -> None: ...


class ServedCollections(Catalogue, Reads, Lifecycle, Protocol):
    """What collections of every kind of server have."""


class Writes(WritableCollections, Protocol):
    """Collections that are made, written and removed here."""

    async def reach(self, name: str, position: Any, deadline: Deadline) -> None: ...

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription: ...

    def delete(self, name: str) -> None: ...

    def store_defaults(self, name: str, defaults: SearchDefaults | None) -> None: ...


class Backups(Protocol):
    """See `tercet.service.copies.backups.CollectionBackups`."""

    def ages(self) -> Sequence[tuple[str, float]]: ...

    def make(self, name: str) -> ServedBackup: ...

    def restore(self, name: str, id: str, new_name: str | None = None) -> CollectionDescription: ...

    def delete(self, name: str, id: str) -> None: ...

    def list(self, name: str) -> Sequence[ServedBackup]: ...


class Shards(Protocol):
    """The shards that hold collections, asked from the event loop."""

    @property
    def map_version(self) -> int: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def observe(self, observer: ShardObserver) -> None: ...


def _unsupported(what: str) -> Exception:
    return InvalidRequestError(f"{what} is not offered by this server", None, "unsupported")


@dataclass(frozen=True, slots=True)
class Served:
    """What a server answers from; None is what its kind of server does not offer.

    builds: whether jobs build collections; lacking: what is raised where something is asked for that is not
    offered, named in words.
    """

    collections: ServedCollections
    writes: Writes | None = None
    backups: Backups | None = None
    shards: Shards | None = None
    builds: bool = False
    lacking: Callable[[str], Exception] = _unsupported

    def require_builds(self) -> None:
        """Raises where no job builds collections."""
        if not self.builds:
            raise self.lacking("building by jobs")

    def offered(self, part: Part | None, what: str) -> Part:
        """A part that is there. what: the part is wanted for. Raises what says that it is not offered."""
        if part is None:
            raise self.lacking(what)
        return part
