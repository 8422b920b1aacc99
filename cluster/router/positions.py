"""How far each shard of each collection is, as far as this router was told, and reads that wait for that."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Mapping
from typing import Any

from tercet.cluster.shards.calls import outcomes
from tercet.cluster.shards.fleet import Fleet
from tercet.cluster.shards.positions import Positions
from tercet.index.errors import PositionLostError
from tercet.service.collections.positions import Position
from tercet.service.exceptions import InvalidRequestError, PositionAheadError
from tercet.service.load.deadlines import Deadline
from tercet.service.load.relay import on_loop


class KnownPositions:
    """Of collections by their names. Safe to use from several threads.

    So the answer to a write of one shard has what was written to the others before.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[str, Positions] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Positions:
        """Of a collection: 0 for a shard of which nothing is known."""
        return self._known.get(name) or Positions.none(len(self._fleet))

    def note(self, name: str, answered: Mapping[int, int]) -> Positions:
        """What is known with the positions that some shards answered, by their numbers."""
        with self._lock:
            written = Positions(tuple(answered.get(shard, 0) for shard in range(len(self._fleet))))
            known = self._known[name] = self.of(name).merged(written)
        return known

    def forget(self, name: str) -> None:
        """The collection is another one from now on."""
        with self._lock:
            self._known.pop(name, None)

    def position_of(self, given: Position, param: str) -> Positions:
        """What a request names as a position. Raises InvalidRequestError naming the field."""
        try:
            return Positions.parse(str(given), len(self._fleet))
        except ValueError as error:
            raise InvalidRequestError(f"{param}: {error}", param) from error

    async def reach(self, name: str, position: Positions, deadline: Deadline) -> None:
        """Waits until every shard has what was written up to its number. name: the collection's own. From the
        event loop, or in a relay.

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
                self.forget(name)
            if isinstance(answer, Exception):
                raise answer
        self.note(name, dict(later))


def require_numbers(position: Positions, shards: int, param: str) -> None:
    """Raises InvalidRequestError for a position of other shards, as one that was read before these came."""
    try:
        position.require(shards)
    except ValueError as error:
        raise InvalidRequestError(f"{param}: {error}", param) from error
