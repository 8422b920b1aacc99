"""Ids that a put into a partitioned collection claims, so that none gets into two partitions.

`tercet.index.live.claims` is the shards' side of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tercet.cluster.router.partial_writes import FencedPartsError
from tercet.cluster.shards.client import ShardClient
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.servers import Ask
from tercet.index.errors import CollectionFencedError
from tercet.models.representations import Int64
from tercet.service.exceptions import ShardWriteError
from tercet.service.load.deadlines import Deadline
from tercet.service.shard.messages import COLLECTIONS


@contextmanager
def claimed(
    fleet: Fleet, name: str, documents: Sequence[tuple[str, str]], placed: Int64, deadline: Deadline
) -> Iterator[None]:
    """Within it, shards put no documents of the ids that others get. documents: the id and partition of each,
    none of a collection that is not partitioned; placed: int64[N], the shard of each.

    Raises PartitionConflictError where a shard has an id of others, or one of its own in another partition;
    FencedPartsError as a put.
    """
    path, owner = f"{COLLECTIONS}/{name}/claims", secrets.token_hex(8)
    bodies: dict[int, dict[str, Any]] = {}
    for shard in range(len(fleet) if documents else 0):
        others = [documents[row][0] for row in np.flatnonzero(placed != shard).tolist()]
        own = dict(documents[row] for row in np.flatnonzero(placed == shard).tolist())
        if others:  # a write of one shard alone is whole or not at all
            bodies[shard] = {"ids": others, "own": own, "owner": owner}

    def claiming(body: dict[str, Any]) -> Ask[None]:
        async def ask(shard: ShardClient) -> None:
            await shard.json("POST", path, body, deadline=deadline)

        return ask

    def failures(*, ends: bool) -> list[Exception]:
        ending = {"own": {}, "ends": True} if ends else {}
        asks = {shard: claiming({**body, **ending}) for shard, body in bodies.items()}
        return [outcome for outcome in fleet.outcomes(asks).values() if isinstance(outcome, Exception)]

    is_unknown = False
    try:
        if failed := failures(ends=False):
            fenced = [each for each in failed if isinstance(each, CollectionFencedError)]
            if len(fenced) == len(failed):
                raise FencedPartsError(failed[0], 0, frozenset(placed.tolist()))
            raise next(each for each in failed if each not in fenced)
        yield
    except ShardWriteError as error:  # where a part may be made later, the claims end by themselves
        is_unknown = error.is_unknown
        raise
    finally:
        if not is_unknown:
            failures(ends=True)
