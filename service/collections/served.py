"""The collections of a server, whether it has them itself or shards do: what requests and its life need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.live.statistics import CollectionCounts
from tercet.service.collections.positions import Position
from tercet.service.collections.readable import NamedAliases, ReadableSnapshot
from tercet.service.collections.registry import CollectionDescription, SearchTarget
from tercet.service.collections.shard_telemetry import ShardObserver
from tercet.service.collections.target import WritableCollections
from tercet.service.load.deadlines import Deadline
from tercet.service.load.pools import Pool
from tercet.service.load.reading import ANY_TIME, Reading


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


class ServedBackups(Protocol):
    """The methods of `tercet.service.copies.backups.CollectionBackups`."""

    def ages(self) -> Sequence[tuple[str, float]]: ...

    def make(self, name: str) -> ServedBackup: ...

    def restore(self, name: str, id: str, new_name: str | None = None) -> CollectionDescription: ...

    def delete(self, name: str, id: str) -> None: ...

    def list(self, name: str) -> Sequence[ServedBackup]: ...


class ServedCollections(WritableCollections, Protocol):
    """The methods of `CollectionRegistry`, in `registry.py`, that are called from elsewhere."""

    @property
    def aliases(self) -> NamedAliases: ...

    @property
    def looking_pool(self) -> Pool: ...

    @property
    def search_threads(self) -> int: ...

    @property
    def open_counts(self) -> tuple[tuple[str, int], ...]: ...

    @property
    def map_version(self) -> int: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def observe(self, observer: ShardObserver) -> None: ...

    async def open(self, name: str, how: Reading = ANY_TIME) -> ReadableSnapshot: ...

    async def open_with_defaults(
        self, name: str, how: Reading = ANY_TIME, *, defaults: bool = True, effort: bool = True
    ) -> SearchTarget[ReadableSnapshot]: ...

    async def reach(self, name: str, position: Any, deadline: Deadline) -> None: ...

    def describe(self, name: str) -> CollectionDescription: ...

    def names(self) -> list[str]: ...

    def statistics(self, name: str) -> ServedStatistics: ...

    def all_statistics(self) -> Iterator[tuple[str, CollectionCounts]]: ...

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription: ...

    def delete(self, name: str) -> None: ...

    def require_jobs(self) -> None: ...

    def open_written(self) -> None: ...

    def checkpoints(self) -> dict[str, str]: ...

    def release_superseded(self) -> None: ...

    def close(self) -> None: ...

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]: ...


@dataclass(frozen=True, slots=True)
class Served:
    """What a server answers from."""

    collections: ServedCollections
    backups: ServedBackups
