"""Which collections there are over shards: every shard has a part of each, with the same settings.

The first shard says what there is: it is the last to get a collection, and the last to lose it. So a repeat
makes or removes the rest of one that is half made or half removed, as a shard failed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from tercet.cluster.router.aliases import ShardedAliases
from tercet.cluster.router.positions import KnownPositions
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import READ, Fleet
from tercet.cluster.shards.placement import Placement
from tercet.cluster.shards.refusals import lost_here, reading
from tercet.cluster.shards.servers import Ask, ShardServers
from tercet.index.catalog.alike import united_settings
from tercet.index.catalog.defaults import SearchDefaults
from tercet.index.catalog.lineage import Lineage
from tercet.index.catalog.names import check_collection_name
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import CollectionExistsError, CollectionNotFoundError, SearchIndexError
from tercet.service.answers.collection_settings import (
    codebook_from,
    codebook_text,
    defaults_from,
    settings_from,
    settings_record,
)
from tercet.service.collections.readable import CollectionDescription
from tercet.service.exceptions import OverloadedError, ShardError
from tercet.service.load.deadlines import within
from tercet.service.shard.messages import COLLECTIONS

REMOVING_SECONDS = 60.0  # a shard gives up a merge first, and removes all files
LONGEST_SECONDS = 4.0  # half of which a writing server may take to tell what there is

log = logging.getLogger("tercet")


@dataclass(frozen=True, slots=True)
class ShardedStatistics:
    """What all shards hold of a collection: see `tercet.index.live.statistics.CollectionStatistics`.
    Positions have
    a number for each.
    """

    documents: int
    deleted: int
    segments: int
    part_bytes: Mapping[str, int]
    memory_documents: int
    memory_bytes: int
    ledger_entries: int
    ledger_bytes: int
    position: str
    flushed_position: str
    flushing: bool
    merging: bool


class ShardedCatalog:
    """Its methods wait for shards, and are for threads other than that of the event loop."""

    def __init__(
        self, fleet: Fleet, placement: Placement, aliases: ShardedAliases, known: KnownPositions
    ) -> None:
        self._fleet = fleet
        self._placement = placement
        self._aliases = aliases
        self._known = known

    def names(self) -> list[str]:
        """Of all collections, in order."""
        found = self._reading().one(0, lambda shard: shard.json("GET", "/collections"))
        with reading(self._fleet.clients[0].name):
            return [str(each["name"]) for each in found["collections"]]

    def describe(self, name: str) -> CollectionDescription:
        """Settings, defaults and state: see `CollectionRegistry.describe`."""
        names = self._aliases.collections_of(name)
        if len(names) == 1:
            return self._describe(names[0])
        parts = [self._describe(each) for each in names]
        published = [f"{part.settings.name}:{part.snapshot}" for part in parts if part.snapshot is not None]
        return CollectionDescription(
            united_settings(name, [part.settings for part in parts]),
            parts[0].defaults,
            ",".join(sorted(published)) or None,
            sum(part.documents for part in parts),
            names,
        )

    def list(self, names: Iterable[str] | None = None) -> list[CollectionDescription]:
        """The collections of these names that are there, by default all, in order of name."""
        answers = self._reading().all(lambda shard: shard.json("GET", COLLECTIONS))
        found: dict[str, list[Any]] = {}
        for shard, answer in zip(self._fleet.clients, answers, strict=True):
            with reading(shard.name):
                for record in answer["collections"]:
                    found.setdefault(str(record["settings"]["name"]), []).append(record)
        whole = {name: records for name, records in found.items() if len(records) == len(self._fleet)}
        wanted = sorted(whole) if names is None else [name for name in names if name in whole]
        return [self._description(whole[name]) for name in wanted]

    def create(self, name: str, settings: CollectionSettings) -> CollectionDescription:
        """An empty collection in every shard. Raises InvalidNameError or CollectionExistsError; what this
        call made of it is removed then.
        """
        path, shards = f"{COLLECTIONS}/{check_collection_name(name)}", len(self._fleet)
        self._require_unlost(name, path)
        lineage = Lineage.new()
        id = lineage.id
        made: dict[int, bool] = {}

        def created(number: int) -> Ask[tuple[bool, str]]:
            part = replace(lineage, part=self._placement.part(id, number))
            record = settings_record(replace(settings, lineage=part))
            body = {**record, "codebook": codebook_text(settings), "claims": number == 1}

            async def ask(shard: ShardClient) -> tuple[bool, str]:
                answer = await shard.json("PUT", path, body)
                with reading(shard.name):
                    return bool(answer["created"]), str(answer["part"])

            return ask

        # The second shard says which id the parts have, so that two creations at a time give the same.
        for some in (range(1, min(shards, 2)), range(2, shards), range(1)):
            outcomes = self._fleet.outcomes({shard: created(shard) for shard in some})
            failures = [found for found in outcomes.values() if isinstance(found, Exception)]
            answers = {shard: found for shard, found in outcomes.items() if not isinstance(found, Exception)}
            made |= {shard: new for shard, (new, _) in answers.items()}
            id = answers[1][1] if 1 in answers else id
            if failures:
                self._take_back(name, [shard for shard, new in made.items() if new])
                raise failures[0]
        if not made[0]:
            raise CollectionExistsError(
                f"collection {name!r} exists already; delete it or choose another name"
            )
        self._known.forget(name)
        return CollectionDescription(settings, None, None, 0)

    def delete(self, name: str) -> None:
        """Removes a collection from all shards. Raises CollectionNotFoundError, CollectionAliasedError or
        CollectionBusyError; where one shard fails, a repeat removes it from the others.
        """
        self._known.forget(name)
        path = f"/collections/{check_collection_name(name)}"
        self._fleet.remove(path, CollectionNotFoundError, within(REMOVING_SECONDS))

    def store_defaults(self, name: str, defaults: SearchDefaults | None) -> None:
        """Has all shards store a collection's defaults, or remove them. Raises CollectionNotFoundError; where
        one shard fails, a repeat stores them in the others.
        """
        path = f"/collections/{check_collection_name(name)}/defaults"
        if defaults is None:
            self._fleet.all(lambda shard: shard.json("DELETE", path))
            return
        candidates = asdict(defaults.candidates)
        if not defaults.weights.bm25:
            del candidates["bm25"]
        body = {"weights": asdict(defaults.weights), "candidates": candidates}
        self._fleet.all(lambda shard: shard.json("PUT", path, body))

    def statistics(self, name: str) -> ShardedStatistics:
        """What all shards hold of a collection. Raises CollectionNotFoundError."""
        path = f"/collections/{self._aliases.collection_of(name)}/stats"
        answers = self._fleet.all(lambda shard: shard.json("GET", path))
        sums: Counter[str] = Counter()
        part_bytes: Counter[str] = Counter()
        for shard, answer in zip(self._fleet.clients, answers, strict=True):
            with reading(shard.name):
                sums.update({field: int(answer[field]) for field in ("documents", "deleted", "segments")})
                sums.update({f"memory_{field}": int(size) for field, size in answer["unpublished"].items()})
                sums.update({f"ledger_{field}": int(size) for field, size in answer["ledger"].items()})
                part_bytes.update({part: int(size) for part, size in answer["bytes"].items()})
        return ShardedStatistics(
            documents=sums["documents"],
            deleted=sums["deleted"],
            segments=sums["segments"],
            part_bytes=part_bytes,
            memory_documents=sums["memory_documents"],
            memory_bytes=sums["memory_bytes"],
            ledger_entries=sums["ledger_entries"],
            ledger_bytes=sums["ledger_bytes"],
            position=".".join(str(answer["position"]) for answer in answers),
            flushed_position=".".join(str(answer["published_position"]) for answer in answers),
            flushing=any(answer["flushing"] for answer in answers),
            merging=any(answer["merging"] for answer in answers),
        )

    def _reading(self) -> Fleet:
        """Replicas answer where the writing server does not."""
        return self._fleet.reading(within(LONGEST_SECONDS), writer_first=True)

    def _describe(self, name: str) -> CollectionDescription:
        """One collection, by its own name."""
        path = f"{COLLECTIONS}/{check_collection_name(name)}"
        return self._description(self._reading().all(lambda shard: shard.json("GET", path)))

    def _description(self, records: Sequence[Any]) -> CollectionDescription:
        """What the records of all shards say, of which the first has settings and defaults."""
        with reading(self._fleet.clients[0].name):
            try:
                settings = settings_from(records[0], codebook_from(records[0]["codebook"]), "settings")
            except SearchIndexError as error:
                raise ValueError(error) from error
            fields = [{**record["settings"]["fields"], **record["later_fields"]} for record in records]
            settings = with_fields_of_all(settings, common_fields(fields))
            snapshots = [record["snapshot"] for record in records]
            return CollectionDescription(
                settings,
                defaults_from(records[0]["defaults"]),
                ",".join(each or "-" for each in snapshots) if any(snapshots) else None,
                sum(int(record["documents"]) for record in records),
            )

    def _require_unlost(self, name: str, path: str) -> None:
        """Raises ShardUnavailableError where replicas have a collection that is to be made, and who takes the
        writes of their shard has not.
        """
        deadline = within(LONGEST_SECONDS)

        async def asked(shard: ShardClient) -> None:
            await shard.json("GET", path, deadline=deadline)

        async def is_lost(servers: ShardServers) -> bool:
            try:
                await servers.ask_one(servers.writer, READ, asked)
            except CollectionNotFoundError as error:
                if not error.was_deleted:
                    with suppress(CollectionNotFoundError, ShardError, OverloadedError):
                        await servers.ask(servers.replicas, READ, asked, deadline)
                        return True
            return False

        several = {
            shard: is_lost(servers) for shard, servers in enumerate(self._fleet.servers) if len(servers) > 1
        }
        for shard, lost in self._fleet.run(several).items():
            if lost is True:
                raise lost_here(name, self._fleet.clients[shard].name)

    def _take_back(self, name: str, shards: Iterable[int]) -> None:
        """Removes a collection where it was made just now, as far as that is possible."""
        path = f"/collections/{name}"
        outcomes = self._fleet.outcomes(dict.fromkeys(shards, lambda shard: shard.json("DELETE", path)))
        for shard, found in outcomes.items():
            if isinstance(found, Exception):
                log.warning(
                    "collection %s stays in shard %s: %s", name, self._fleet.clients[shard].name, found
                )


def common_fields(fields: Sequence[Mapping[str, FieldType]]) -> dict[str, FieldType]:
    """The fields that all shards have: while they are declared, some have them already."""
    first, *others = fields
    return {name: kind for name, kind in first.items() if all(each.get(name) == kind for each in others)}


def with_fields_of_all(settings: CollectionSettings, fields: Mapping[str, FieldType]) -> CollectionSettings:
    """The settings of one shard with those of its fields that all shards have."""
    later = tuple(name for name in settings.later_fields if name in fields)
    return replace(settings, fields=fields, later_fields=later)
