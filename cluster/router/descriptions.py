"""What a collection is, by its shards: described at the first use, and again where that may have changed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.fan_out import FanOut
from tercet.cluster.router.shard_set import ShardSet
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.metadata import FieldType
from tercet.index.languages.sample import LanguageSample
from tercet.service.exceptions import OverloadedError, ShardError, ShardFailedError
from tercet.service.load.deadlines import within
from tercet.service.load.reading import Reading
from tercet.service.shard.description import ShardDescription

KNOWN_SECONDS = 10.0  # so long a description counts, where no shard says that it has another
RENEWING_SECONDS = 1.0


def described(shards: ShardSet, name: str, how: Reading) -> tuple[KnownCollection, FanOut]:
    """What is known of a collection, by its own name, and its shards as one request asks them."""
    fan_out = FanOut(shards.fleet, name, how)
    known = shards.known.get(name)
    if known is None or known.is_stale:
        known = _describe(shards, name, fan_out)
    elif known.age_seconds > KNOWN_SECONDS:
        known.described = time.monotonic()  # so that others go on with it meanwhile
        with suppress(ShardError, OverloadedError):
            known = _describe(shards, name, FanOut(shards.fleet, name, Reading(within(RENEWING_SECONDS))))
    fan_out.ask_last(known.behind)
    return known, fan_out


def _describe(shards: ShardSet, name: str, fan_out: FanOut) -> KnownCollection:
    """The collection as all shards describe it."""
    servers = shards.fleet.servers

    def read(shard: int, body: bytes) -> ShardDescription:
        return ShardDescription.read(body, fan_out.describer_of(shard))

    answers = fan_out.ask("description", [b""] * len(fan_out), read, of_writer=True)
    heard = [(shard, answer) for shard, answer in enumerate(answers) if answer is not None]
    fields = _common([answer.settings.fields for _, answer in heard])
    languages = LanguageSample.united([answer.languages for _, answer in heard])
    (first, description), *others = [(shard, _with_fields(answer, fields)) for shard, answer in heard]
    for shard, other in others:
        if other.settings != description.settings:
            what = "codebooks" if _like(other.settings, description.settings) else "settings"
            raise ShardFailedError(
                f"shards {fan_out.describer_of(first)} and {fan_out.describer_of(shard)} have different "
                f"{what} of collection {name!r}; create it anew on all of them, or build it in shards "
                "(tercet collection build --shards)",
                fan_out.describer_of(shard),
            )
    known = KnownCollection(
        name,
        replace(description, languages=languages),
        [None if answer is None else answer.tag for answer in answers],
        [fan_out.describer_of(shard) for shard in range(len(fan_out))],
        [len(shard) for shard in servers],
        is_stale=None in answers,
    )
    former = shards.known.get(name)
    if former is not None and former.stays(known, [shard.name for shard in servers]):
        former.described, former.behind = time.monotonic(), set()
        former.description = replace(former.description, languages=languages)
        return former
    if former is not None and former.description.settings == description.settings:
        known.term_states = former.term_states
    shards.known[name] = known
    return known


def _common(fields: Sequence[Mapping[str, FieldType]]) -> dict[str, FieldType]:
    """The fields that all shards have: while they are declared, some have them already."""
    first, *others = fields
    return {name: kind for name, kind in first.items() if all(each.get(name) == kind for each in others)}


def _with_fields(described: ShardDescription, fields: Mapping[str, FieldType]) -> ShardDescription:
    settings = described.settings
    later = tuple(name for name in settings.later_fields if name in fields)
    return replace(described, settings=replace(settings, fields=fields, later_fields=later))


def _like(one: CollectionSettings, other: CollectionSettings) -> bool:
    """Whether settings differ in their codebook alone."""
    return replace(one, codebook=other.codebook) == other
