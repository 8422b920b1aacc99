"""How far each shard of each collection is, as far as this router was told."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tercet.cluster.shards.positions import Positions


class KnownPositions:
    """Of collections by their names. Safe to use from several threads.

    So the answer to a write of one shard has what was written to the others before.
    """

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self._known: dict[str, Positions] = {}
        self._lock = threading.Lock()

    def of(self, name: str) -> Positions:
        """Of a collection: 0 for a shard of which nothing is known."""
        return self._known.get(name) or Positions.none(self.shards)

    def note(self, name: str, answered: Mapping[int, int]) -> Positions:
        """What is known with the positions that some shards answered, by their numbers."""
        with self._lock:
            written = Positions(tuple(answered.get(shard, 0) for shard in range(self.shards)))
            known = self._known[name] = self.of(name).merged(written)
        return known

    def forget(self, name: str) -> None:
        """The collection is another one from now on."""
        with self._lock:
            self._known.pop(name, None)
