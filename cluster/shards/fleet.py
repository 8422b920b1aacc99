"""All shards of a router, asked at once by threads that wait."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from cluster.shards.calls import Loop, outcomes
from cluster.shards.client import ShardClient

Result = TypeVar("Result")
Ask = Callable[[ShardClient], Coroutine[Any, Any, Result]]


class Fleet:
    """Shards in order of their numbers. Methods are for threads other than that of the event loop."""

    def __init__(self, clients: Sequence[ShardClient], loop: Loop) -> None:
        self.clients = tuple(clients)
        self.loop = loop

    def __len__(self) -> int:
        return len(self.clients)

    def all(self, ask: Ask[Result]) -> list[Result]:
        """What each gives, in order. Raises the failure of the first that fails, once all have ended."""
        return list(self.require(dict.fromkeys(range(len(self)), ask)).values())

    def require(self, asks: Mapping[int, Ask[Result]]) -> dict[int, Result]:
        """What some shards give, by their numbers. Raises as `all`."""
        results: dict[int, Result] = {}
        for shard, found in self.outcomes(asks).items():
            if isinstance(found, Exception):
                raise found
            results[shard] = found
        return results

    def first_last(self, ask: Ask[Result]) -> list[Result]:
        """What each gives, in order, the first asked once all others have done it.

        The first says what there is: so a change is seen where all have made it, and one that was cut short
        can be repeated. Raises as `all`.
        """
        others = self.require(dict.fromkeys(range(1, len(self)), ask))
        return [self.one(0, ask), *others.values()]

    def remove(self, path: str, missing: type[Exception]) -> None:
        """Deletes what a path names in every shard, as `first_last`. Where one lacks it that is no error, as
        after a removal that was cut short, unless all do.
        """
        lacking: list[Exception] = []

        async def removed(shard: ShardClient) -> None:
            try:
                await shard.json("DELETE", path)
            except missing as error:
                lacking.append(error)

        self.first_last(removed)
        if len(lacking) == len(self):
            raise lacking[-1]

    def outcomes(self, asks: Mapping[int, Ask[Result]]) -> dict[int, Result | Exception]:
        """What some shards give or raise, by their numbers, once all have ended."""
        if not asks:
            return {}
        shards = sorted(asks)
        found = self.loop.run(outcomes([asks[shard](self.clients[shard]) for shard in shards]))
        return dict(zip(shards, found, strict=True))

    def one(self, shard: int, ask: Ask[Result]) -> Result:
        """What one gives or raises."""
        return self.loop.run(ask(self.clients[shard]))
