"""Facets over shards: each tells its commonest values, and then what is in doubt, in three rounds at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tercet.cluster.router.view import View
from tercet.index.candidates import Facet
from tercet.index.documents.filters import Filter
from tercet.index.search.facet_parts import FIRST_VALUES, NO_NAMES, FieldCounts, MergedValues, WantedValues
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.records import Facets, FacetsRequest

ROUNDS = 3


async def facets(view: View, wanted: Mapping[str, int], filter: Filter | None) -> dict[str, Facet]:
    """So many of the commonest values of each field, without those of a shard that is lost."""
    fields = view.known.description.settings.fields
    counts: dict[int, dict[str, FieldCounts]] = {}
    first = [WantedValues(field, FIRST_VALUES + limit, 1, NO_NAMES) for field, limit in wanted.items()]
    asked: list[list[WantedValues]] = view.of_searched(first, [])
    for left in reversed(range(ROUNDS)):
        await _ask(view, asked, filter, counts)
        shards = [shard for shard in sorted(counts) if not view.fan_out.is_lost(shard)]
        merged = {
            field: MergedValues([counts[shard][field] for shard in shards], limit)
            for field, limit in wanted.items()
        }
        asked = [[] for _ in asked]
        for field, values in merged.items() if left else ():
            for shard, more in zip(shards, values.following(field, more=left > 1), strict=True):
                asked[shard] += [] if more is None else [more]
        if not any(asked):
            break
    return {field: values.facet(boolean=fields[field] == "boolean") for field, values in merged.items()}


async def _ask(
    view: View,
    asked: Sequence[Sequence[WantedValues]],
    filter: Filter | None,
    counts: dict[int, dict[str, FieldCounts]],
) -> None:
    """Adds to the counts of each shard's fields what it is asked for."""

    def read(shard: int, body: bytes) -> None:
        answer = decode(Facets, body, F=len(asked[shard]))
        view.fix(shard, answer.at)
        own = counts.setdefault(shard, {})
        for values, found in zip(asked[shard], answer.fields, strict=True):
            known = own.get(values.field)
            own[values.field] = found if known is None else known.with_more(values, found)

    bodies = [encode(FacetsRequest(tuple(values), filter)) if values else None for values in asked]
    await view.read("facets", bodies, read, fixes=True)
