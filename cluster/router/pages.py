"""Pages of documents over shards: each shard lists its own in order, some at a time, and they are merged."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from tercet.cluster.router.stored_json import document_from
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.refusals import reading
from tercet.index.candidates import Document
from tercet.index.reading.ordered import Value
from tercet.service.load.deadlines import Deadline

LARGEST_PAGE = 100  # documents that a shard is asked for at a time
SPARE = 1.2  # how many times its even share a shard is asked for first, and so many more
SPARE_DOCUMENTS = 4
_END = 256  # above all bytes

OrderKey = Callable[[Document], Any]


class ShardedPages:
    """Lists of the documents below one path of every shard."""

    def __init__(self, fleet: Fleet, path: str, deadline: Deadline) -> None:
        self._fleet = fleet
        self._path = path
        self._deadline = deadline

    def merged(
        self, query: Mapping[str, str], after: str | None, limit: int, key: OrderKey, shards: Sequence[int]
    ) -> list[Document]:
        """Up to `limit` documents of some shards in order, from the first that follows `after` on.

        query: of the lists, without `limit` and `after`; key: by which they are in order; shards: their
        numbers.
        """
        share = math.ceil(SPARE * limit / len(shards)) + SPARE_DOCUMENTS
        asked = {**query, "limit": str(min(limit, share, LARGEST_PAGE))}
        first = asked if after is None else {**asked, "after": after}
        answers = self._fleet.require(dict.fromkeys(shards, lambda shard: self._page(shard, first)))
        lists = [self._documents(shard, asked, answer) for shard, answer in answers.items()]
        return list(islice(heapq.merge(*lists, key=key), limit))

    def _documents(self, shard: int, query: Mapping[str, str], answer: Any) -> Iterator[Document]:
        """Those of a shard from its first page on; others are asked for once they are wanted."""
        name = self._fleet.clients[shard].name
        while True:
            with reading(name):
                documents, following = list(map(document_from, answer["documents"])), answer["next"]
            yield from documents
            if following is None:
                return
            answer = self._fleet.one(shard, partial(self._page, query={**query, "after": following}))

    async def _page(self, shard: ShardClient, query: Mapping[str, str]) -> Any:
        return await shard.json("GET", self._path, query=query, deadline=self._deadline)


def value_key(value: Value | None, *, descending: bool) -> tuple[Any, ...]:
    """Orders documents by a value, those without one last."""
    if value is None:
        return (True,)
    if not descending:
        return False, value
    if isinstance(value, bytes):
        return False, (*(255 - byte for byte in value), _END)
    return False, -value
