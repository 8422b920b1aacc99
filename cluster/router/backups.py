"""Backups of collections over shards: one of each shard, all with the same id.

Each has every write that was acknowledged before the call. Of a write that is made meanwhile some shards may
have their parts, and others not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tercet.cluster.router.shard_set import ShardSet
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.refusals import reading
from tercet.index.backups.records import is_id, new_id
from tercet.index.errors import BackupNotFoundError
from tercet.service.collections.readable import CollectionDescription
from tercet.service.load.deadlines import within
from tercet.service.shard.messages import COLLECTIONS

LONGEST_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class ShardedBackup:
    """See `tercet.index.backups.records.Backup`. position: as text, one number a shard."""

    id: str
    collection: str
    position: str
    documents: int
    size_bytes: int
    created: str


class ShardedBackups:
    """In the place of `tercet.service.copies.backups.CollectionBackups`. Its methods wait for shards, and are
    for threads other than that of the event loop.
    """

    def __init__(self, shards: Callable[[], ShardSet]) -> None:
        """shards: those of now."""
        self._shards = shards

    def ages(self) -> Sequence[tuple[str, float]]:
        """None: shards tell of theirs."""
        return []

    def list(self, name: str) -> list[ShardedBackup]:
        """Those that every shard has, the newest first. Raises CollectionNotFoundError."""
        shards = self._shards()
        name = shards.aliases.collection_of(name)
        answers = shards.fleet.all(lambda shard: shard.json("GET", f"/collections/{name}/backups"))
        found: dict[str, list[Any]] = {}
        for shard, answer in zip(shards.fleet.clients, answers, strict=True):
            with reading(shard.name):
                for record in answer["backups"]:
                    found.setdefault(str(record["id"]), []).append(record)
        whole = [records for records in found.values() if len(records) == len(answers)]
        backups = [_together(shards.fleet, records) for records in whole]
        return sorted(backups, key=lambda backup: backup.id, reverse=True)

    def make(self, name: str) -> ShardedBackup:
        """One of every shard; where one fails, those of the others are removed again."""
        shards, id = self._shards(), new_id()
        fleet, name = shards.fleet, shards.aliases.collection_of(name)
        path = f"{COLLECTIONS}/{name}/backups/{id}"
        outcomes = fleet.outcomes(dict.fromkeys(range(len(fleet)), partial(_slowly, path=path)))
        failures = [found for found in outcomes.values() if isinstance(found, Exception)]
        if failures:
            made = [shard for shard, found in outcomes.items() if not isinstance(found, Exception)]
            remains = f"/collections/{name}/backups/{id}"
            fleet.outcomes(dict.fromkeys(made, lambda shard: shard.json("DELETE", remains)))
            raise failures[0]
        return _together(fleet, list(outcomes.values()))

    def restore(self, name: str, id: str, new_name: str | None = None) -> CollectionDescription:
        """Restores in every shard, one after all others: see `CollectionBackups.restore`.

        Searches may find some shards restored and others not yet. Where one fails, a repeat goes on.
        """
        shards = self._shards()
        name = shards.aliases.collection_of(name)
        body = {} if new_name is None else {"name": new_name}
        path = f"/collections/{name}/backups/{_checked(name, id)}/restore"
        shards.fleet.first_last(partial(_slowly, path=path, body=body))
        return shards.catalog.describe(name if new_name is None else new_name)

    def delete(self, name: str, id: str) -> None:
        """Removes it from every shard. Raises BackupNotFoundError."""
        shards = self._shards()
        name = shards.aliases.collection_of(name)
        shards.fleet.remove(f"/collections/{name}/backups/{_checked(name, id)}", BackupNotFoundError)


def _together(fleet: Fleet, records: Sequence[Any]) -> ShardedBackup:
    with reading(fleet.clients[0].name):
        return ShardedBackup(
            str(records[0]["id"]),
            str(records[0]["collection"]),
            ".".join(str(record["position"]) for record in records),
            sum(int(record["documents"]) for record in records),
            sum(int(record["size_bytes"]) for record in records),
            min(str(record["created_at"]) for record in records),
        )


async def _slowly(shard: ShardClient, path: str, body: Any = None) -> Any:
    """Posts what reads all bytes of a collection."""
    return await shard.json("POST", path, body, deadline=within(LONGEST_SECONDS), repeatable=False)


def _checked(name: str, id: str) -> str:
    if not is_id(id):
        raise BackupNotFoundError(
            f"collection {name!r} has no backup {id!r:.80}; GET /collections/{name}/backups lists them"
        )
    return id
