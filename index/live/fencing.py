"""Has a live collection refuse writes for good, or until it settles: what was acknowledged stays."""

from __future__ import annotations

from tercet.index.catalog.fence import Fence
from tercet.index.errors import CollectionBusyError
from tercet.index.live.committer import Committer
from tercet.index.publisher import Publisher


class Fencing:
    """The fence of one live collection."""

    def __init__(self, publisher: Publisher, committer: Committer) -> None:
        self._publisher = publisher
        self._committer = committer

    def close(self, version: int) -> int:
        """Refuses writes from now on, also after a crash; returns the position of the last one that was
        acknowledged.

        Flushes and merges go on. Raises CollectionBusyError as `Fence.closing`, or while a build or restore
        is under way, and OSError; then all is as before.
        """
        layout = self._publisher.layout
        with self._publisher.lock:
            former = Fence.read(layout)
            former.closing(version).write(layout)
            state = self._committer.fence()
            try:
                state.require_no_build("have it refuse writes after it")
            except CollectionBusyError:
                former.write(layout)
                if not former.closed:
                    self._committer.lift()
                raise
            return state.position
