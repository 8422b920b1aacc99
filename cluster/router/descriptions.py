"""What a collection is, by its shards: described at the first use, and again where that may have changed."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from tercet.cluster.router.catalog import common_fields, with_fields_of_all
from tercet.cluster.router.collection import KnownCollection
from tercet.cluster.router.fan_out import DESCRIPTION, FanOut
from tercet.cluster.router.shard_parts import require_places, require_unlost
from tercet.cluster.router.shard_set import ShardSet
from tercet.cluster.shards.placement import Placement
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import CollectionNotFoundError
from tercet.index.languages.sample import LanguageSample
from tercet.service.exceptions import OverloadedError, ShardError, ShardFailedError
from tercet.service.load.deadlines import within
from tercet.service.load.reading import Reading
from tercet.service.load.relay import on_loop
from tercet.service.shard.description import ShardDescription

KNOWN_SECONDS = 10.0  # so long a description counts, where no shard says that it has another
RENEWING_SECONDS = 1.0


async def described(shards: ShardSet, name: str, how: Reading) -> tuple[KnownCollection, FanOut]:
    """What is known of a collection, by its own name, and its shards as one request asks them. From the event
    loop, or in a relay.
    """
    fan_out = FanOut(shards.fleet, name, how)
    known = shards.known.get(name)
    if known is None or known.is_stale:
        known = await on_loop(_describe(shards, name, fan_out))
    elif known.age_seconds > KNOWN_SECONDS:
        known.described = time.monotonic()  # so that others go on with it meanwhile
        soon = FanOut(shards.fleet, name, Reading(within(RENEWING_SECONDS)))
        with suppress(ShardError, OverloadedError):
            known = await on_loop(_describe(shards, name, soon))
    fan_out.ask_last(known.behind)
    return known, fan_out


async def _describe(shards: ShardSet, name: str, fan_out: FanOut) -> KnownCollection:
    """The collection as all shards describe it."""
    servers, placement = shards.fleet.servers, shards.placement
    answers = await _answers(name, fan_out, placement)
    require_places(name, fan_out, placement, answers)
    await require_unlost(name, fan_out, answers)
    heard = [(shard, answer) for shard, answer in enumerate(answers) if answer is not None]
    languages = LanguageSample.united([answer.languages for _, answer in heard])
    fields = common_fields([answer.settings.fields for _, answer in heard])
    (first, description), *others = [
        (shard, replace(answer, settings=with_fields_of_all(answer.settings, fields)))
        for shard, answer in heard
    ]
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
        is_stale=None in answers,
    )
    former = shards.known.get(name)
    if former is not None and former.stays(known, [shard.name for shard in servers]):
        former.described, former.behind = time.monotonic(), set()
        former.description = replace(former.description, languages=languages)
        return former
    if former is not None and former.description.settings == description.settings:
        known.statistics = former.statistics
    shards.known[name] = known
    return known


async def _answers(name: str, fan_out: FanOut, placement: Placement) -> list[ShardDescription | None]:
    """What each shard says of the collection, None of one that is lost. Raises CollectionNotFoundError where
    one has not got it, though those that have it are in their places.
    """

    def read(shard: int, body: bytes) -> ShardDescription:
        return ShardDescription.read(body, fan_out.describer_of(shard))

    shards = range(len(fan_out))
    try:
        return await fan_out.ask(DESCRIPTION, [b""] * len(shards), read, of_writer=True)
    except CollectionNotFoundError:
        answers: list[ShardDescription | None] = [None] * len(shards)
        for shard in shards:
            with suppress(CollectionNotFoundError, ShardError, OverloadedError):
                bodies = [b"" if each == shard else None for each in shards]
                answers[shard] = (await fan_out.ask(DESCRIPTION, bodies, read, of_writer=True))[shard]
        require_places(name, fan_out, placement, answers)
        raise


def _like(one: CollectionSettings, other: CollectionSettings) -> bool:
    """Whether settings differ in their codebook alone."""
    return replace(one, codebook=other.codebook) == other
