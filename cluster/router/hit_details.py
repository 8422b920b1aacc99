"""What is told of hits alone: contents, windows, and late interaction that counts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tercet.cluster.router.fan_out import FanOut
from tercet.index.candidates import Window
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.search.merging import Merged
from tercet.index.search.shard_search import HitParts, ShardHits
from tercet.models.representations import Float64, Int64
from tercet.service.shard.codec import decode, encode
from tercet.service.shard.records import PartsRequest

CONTENT_BYTES = 16 << 20  # of one answer


@dataclass(slots=True)
class Detail:
    """Of one hit. content: as it is stored, None where it was not asked for."""

    late: float
    window: Window | None
    content: bytes | None


async def details_of(
    fan_out: FanOut,
    searches: Sequence[str | None],
    parts: Sequence[ShardHits],
    chosen: Merged,
    *,
    contents: bool,
    more: bool,
) -> list[Detail]:
    """Those of the chosen hits, asked for as far as they did not come with the scores.

    searches: their names in the shards; contents: whether these are wanted; more: whether nothing came with
    the scores.
    """
    shards, rows = chosen.shards, chosen.places
    details = [
        _detail(parts[shard].components[:, 2], parts[shard].windows, parts[shard].contents, row)
        for shard, row in zip(shards.tolist(), rows.tolist(), strict=True)
    ]
    waiting = [
        number for number, detail in enumerate(details) if more or (contents and detail.content is None)
    ]
    while waiting:
        wanted = np.array(waiting, np.int64)
        wanted_of = [wanted[shards[wanted] == shard] for shard in range(len(parts))]  # the hits of each shard
        numbers = [part.numbers[rows[some]] for part, some in zip(parts, wanted_of, strict=True)]
        orders = [np.argsort(some) for some in numbers]
        answers = await _asked(
            fan_out, searches, [some[order] for some, order in zip(numbers, orders, strict=True)], contents
        )
        waiting = []
        for some, order, answer in zip(wanted_of, orders, answers, strict=True):
            if answer is None:  # of a shard without hits, or a lost one
                continue
            for row, number in enumerate(some[order].tolist()):
                details[number] = _detail(answer.late, answer.windows, answer.contents, row)
                if contents and details[number].content is None:
                    waiting.append(number)
    return details


def _detail(late: Float64, windows: Int64 | None, contents: PackedBytes | None, place: int) -> Detail:
    """That of one place. contents: of the first ones."""
    return Detail(
        float(late[place]),
        None if windows is None else Window(*windows[place].tolist()),
        contents[place] if contents is not None and place < len(contents) else None,
    )


async def _asked(
    fan_out: FanOut, searches: Sequence[str | None], numbers: Sequence[Int64], contents: bool
) -> list[HitParts | None]:
    def read(shard: int, body: bytes) -> HitParts:
        found = decode(HitParts, body, N=len(numbers[shard]))
        if len(found.contents or ()) > len(found.late) or (contents and not found.contents):
            raise ValueError("contents are of the first documents, one at least")
        return found

    size = CONTENT_BYTES if contents else 0
    bodies = [
        encode(PartsRequest(search, size, some)) if search is not None and len(some) else None
        for search, some in zip(searches, numbers, strict=True)
    ]
    return await fan_out.ask("parts", bodies, read)
