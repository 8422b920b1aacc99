"""Where the shards of a collection are: a map on the object store, of which each version is there once.

Versions are `map/000001.json` and so on; the one of the highest number counts. A version never changes, and
of several who publish the next one at the same time one succeeds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tercet.cluster.objects.errors import AlreadyThereError, DamagedObjectError
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.shards.placement import Placement
from tercet.index.catalog.buckets import ranges_from
from tercet.index.errors import CollectionBusyError
from tercet.index.wording import shown

FORMAT = 2
BY_NUMBER = 1  # the format of an older release, whose shards have no buckets
FOLDER = "map"
_FILE = re.compile(rf"{FOLDER}/([0-9]{{6,12}})\.json")
_KEYS = {"format", "collection", "shards", "version"}


@dataclass(frozen=True, slots=True)
class ShardPlace:
    """One shard: the folder of its snapshots, below the map's URL, and the server that has it, if any, with
    the replicas that follow it. received: the folder of documents that the server takes up with this map,
    where it goes on from a former one.
    """

    snapshots: str
    url: str | None = None
    replicas: tuple[str, ...] = ()
    received: str | None = None

    @staticmethod
    def of_servers(snapshots: str, servers: Sequence[str], received: str | None = None) -> ShardPlace:
        """With these servers, of which the first takes its writes; none is none."""
        return ShardPlace(snapshots, servers[0] if servers else None, tuple(servers[1:]), received)

    @property
    def servers(self) -> tuple[str, ...]:
        """All of them, the one that takes writes first."""
        return () if self.url is None else (self.url, *self.replicas)

    @property
    def record(self) -> dict[str, Any]:
        """As a map has it, in JSON."""
        record: dict[str, Any] = {"snapshots": self.snapshots, "url": self.url}
        if self.replicas:
            record["replicas"] = list(self.replicas)
        return record if self.received is None else {**record, "received": self.received}


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shards of a collection, in the order of their numbers, and which documents each has."""

    collection: str
    shards: tuple[ShardPlace, ...]
    placement: Placement
    version: int

    @property
    def path(self) -> str:
        """Where it lies."""
        return f"{FOLDER}/{self.version:06d}.json"

    @property
    def content(self) -> bytes:
        """The bytes of its object."""
        shards = [shard.record for shard in self.shards]
        for number, shard in enumerate(shards):
            if (buckets := self.placement.buckets(number)) is not None:
                shard["buckets"] = buckets
        record = {
            "format": BY_NUMBER if self.placement.owners is None else FORMAT,
            "collection": self.collection,
            "shards": shards,
            "version": self.version,
        }
        return json.dumps(record, indent=1, ensure_ascii=False).encode() + b"\n"


def newest_map(store: ObjectStore) -> ShardMap | None:
    """The map that counts, None where none was published. Raises DamagedObjectError."""
    found = [
        (int(named[1]), each.path) for each in store.list(FOLDER) if (named := _FILE.fullmatch(each.path))
    ]
    if not found:
        return None
    version, path = max(found)
    return _map_of(store.get(path), version, f"{store.url}/{path}")


def publish_map(
    store: ObjectStore,
    collection: str,
    shards: Sequence[ShardPlace],
    placement: Placement,
    former: ShardMap | None,
) -> ShardMap:
    """Makes these shards those of the collection. former: the map that they take the place of.

    Raises CollectionBusyError where another map did so meanwhile.
    """
    new = ShardMap(collection, tuple(shards), placement, 1 if former is None else former.version + 1)
    try:
        store.create(new.path, new.content)
    except AlreadyThereError as error:
        raise CollectionBusyError(
            f"{store.url}: version {new.version} of the map was published meanwhile, by another build or "
            "re-sharding; nothing of this one counts: see what that was, and run this again"
        ) from error
    return new


def _map_of(content: bytes, version: int, name: str) -> ShardMap:
    try:
        record: dict[str, Any] = json.loads(content)
        format = record["format"]
        if record.keys() != _KEYS or format not in (BY_NUMBER, FORMAT) or record["version"] != version:
            raise ValueError(f"not a map of format {FORMAT} and version {version}")
        shards = tuple(map(_place_of, record["shards"]))
        if not shards:
            raise ValueError("it has no shards")
        placement = Placement(len(shards), None)
        if format == FORMAT:
            placement = Placement.of_ranges([ranges_from(shard["buckets"]) for shard in record["shards"]])
        return ShardMap(_text(record["collection"]), shards, placement, version)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedObjectError(f"{name} is no map of shards ({error}); restore it") from error


def _place_of(record: dict[str, Any]) -> ShardPlace:
    url, replicas = record["url"], tuple(map(_text, record.get("replicas", ())))
    if replicas and url is None:
        raise ValueError("a shard has replicas, and no server that they follow")
    received = record.get("received")
    return ShardPlace(
        _text(record["snapshots"]),
        None if url is None else _text(url),
        replicas,
        None if received is None else _text(received),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is no text")
    return value
