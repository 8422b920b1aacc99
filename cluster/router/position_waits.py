"""Positions of collections over shards, as requests name them, and reads that wait for one."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tercet.cluster.router.positions import KnownPositions
from tercet.cluster.shards.calls import outcomes
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.positions import Positions
from tercet.index.errors import PositionLostError
from tercet.service.collections.positions import Position
from tercet.service.exceptions import InvalidRequestError, PositionAheadError
from tercet.service.load.deadlines import Deadline
from tercet.service.load.relay import on_loop


class PositionWaits:
    """Waits for positions. Use from the event loop, or from a relay."""

    def __init__(self, fleet: Fleet, known: KnownPositions) -> None:
        self._fleet = fleet
        self._known = known

    def position_of(self, given: Position, param: str) -> Positions:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        try:
            return Positions.parse(str(given), len(self._fleet))
        except ValueError as error:
            raise InvalidRequestError(f"{param}: {error}", param) from error

    async def reach(self, name: str, position: Positions, deadline: Deadline) -> None:
        """Waits until every shard has what was written up to its number. name: the collection's own.

        Also a shard that acknowledged the write to this router is asked: it may have been lost since. Raises
        PositionAheadError, PositionLostError, PositionNotReachedError, and what asking a shard raises.
        """
        require_numbers(position, len(self._fleet), "min_position")
        later = [(shard, wanted) for shard, wanted in enumerate(position.numbers) if wanted]
        if not later:
            return
        requests: list[Coroutine[Any, Any, Any]] = [
            self._fleet.clients[shard].json(
                "POST", f"/collections/{name}/documents/count", {"min_position": wanted}, deadline=deadline
            )
            for shard, wanted in later
        ]
        for answer in await on_loop(outcomes(requests)):
            if isinstance(answer, PositionAheadError | PositionLostError):  # it was made anew, or recovered
                self._known.forget(name)
            if isinstance(answer, Exception):
                raise answer
        self._known.note(name, dict(later))


def require_numbers(position: Positions, shards: int, param: str) -> None:
    """Raises InvalidRequestError for a position of other shards, as one that was read before these came."""
    try:
        position.require(shards)
    except ValueError as error:
        raise InvalidRequestError(f"{param}: {error}", param) from error
