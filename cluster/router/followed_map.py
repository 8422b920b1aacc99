"""A router that follows a map of shards: the newest one whose shards all answer is the one that is served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tercet.cluster.errors import ClusterError
from tercet.cluster.objects.store import ObjectStore
from tercet.cluster.router.shard_map import map_at, servers_of
from tercet.cluster.router.shard_set import ShardSet
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.map import ShardMap
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.records import Record
from tercet.index.errors import SearchIndexError
from tercet.index.wording import failure_text
from tercet.service.exceptions import ServiceError, SettingsError
from tercet.service.load.deadlines import within
from tercet.service.settings.server_urls import SERVERS
from tercet.service.shard.messages import COLLECTIONS

ANSWER_SECONDS = 5.0  # in which a shard of a newer map must say that it has the collection

log = logging.getLogger("tercet")


class FollowedMap:
    """The map on an object store. Of one thread at a time, other than that of the event loop."""

    def __init__(
        self, store: ObjectStore, pause_seconds: float, fleet_of: Callable[[Sequence[Sequence[str]]], Fleet]
    ) -> None:
        """pause_seconds: between two looks; fleet_of: the shards at these servers."""
        self.pause_seconds = pause_seconds
        self._store = store
        self._fleet_of = fleet_of
        self._logged = ""

    def first(self) -> tuple[Fleet, ShardMap]:
        """The shards of the newest map, whether they answer or not. Raises as `map_at` and `servers_of`."""
        shard_map = map_at(self._store)
        return self._fleet_of(servers_of(self._store, shard_map)), shard_map

    def newer(self, present: ShardSet) -> ShardSet:
        """The shards of a newer map, else those that are there, as where that map or one of its shards cannot
        be used now; this is logged once.
        """
        try:
            taken = self._newer(present)
        except (ClusterError, ServiceError, SearchIndexError, OSError) as error:
            reason = failure_text(error)
            self._log_once(f"version {present.version} of the map of shards stays in use: {reason}")
            return present
        self._logged = ""
        return taken

    def _newer(self, present: ShardSet) -> ShardSet:
        shard_map = map_at(self._store)
        if shard_map.version <= present.version:
            return present
        servers = servers_of(self._store, shard_map)
        same = [tuple(client.name for client in shard.clients) for shard in present.fleet.servers]
        if servers == same and shard_map.placement == present.placement:
            return replace(present, version=shard_map.version)
        fleet = self._fleet_of(servers)
        path = f"{COLLECTIONS}/{shard_map.collection}"
        answers = fleet.all(lambda shard: shard.json("GET", path, deadline=within(ANSWER_SECONDS)))
        self._require_settled(shard_map, answers)
        log.info(
            "version %d of the map of shards is in use: %s",
            shard_map.version,
            ", ".join(map(SERVERS.join, servers)),
        )
        return ShardSet.of(fleet, shard_map.placement, shard_map.version)

    def _require_settled(self, shard_map: ShardMap, answers: Sequence[Any]) -> None:
        """Raises SettingsError where a shard is not what the map says, as for a moment while it settles."""
        for number, answer in enumerate(answers):
            path = Path(f"shard {number}")
            lineage = answer["lineage"] and Lineage.of_record(Record.of(answer["lineage"], path))
            part = lineage.part if lineage else None
            if part is not None and part != shard_map.placement.part(part.collection, number):
                raise SettingsError(f"shard {number} does not have its buckets of it yet")

    def _log_once(self, message: str) -> None:
        """Logs what is another message than the last one."""
        if message != self._logged:
            log.error("%s", message)
        self._logged = message
