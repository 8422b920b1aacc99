"""Has a live collection go on as a copy of another lineage, at positions that no write was given."""

from __future__ import annotations

from dataclasses import replace

from tercet.index.catalog.lineage import Lineage
from tercet.index.live.committer import Committer
from tercet.index.live.flush import Flush
from tercet.index.publisher import Publisher


class Resuming:
    """The changes of one live collection's lineage."""

    def __init__(self, publisher: Publisher, committer: Committer, flush: Flush) -> None:
        self._publisher = publisher
        self._committer = committer
        self._flush = flush

    def run(self, lineage: Lineage, position: int) -> None:
        """Goes on after a position, above all that this collection has given, as this lineage.

        The position is published before the lineage, so that after a crash in between nothing is taken for
        what it is not. A second publication lets readers of other processes notice. Raises
        CollectionFencedError, CollectionBusyError while a build is under way, and what a flush raises.
        """
        publisher, committer = self._publisher, self._committer
        with publisher.lock:
            committer.require_open()
            committer.state.require_no_build("change its lineage after it")
            self._flush.run_locked()
            committer.change(lambda state: replace(state, position=position))
            self._flush.run_locked()
            lineage.write(publisher.layout.folder)
            publisher.settings = replace(publisher.settings, lineage=lineage)
            publisher.publish(publisher.manifest.segments, position)
            settings, name = publisher.settings, publisher.manifest.name
            committer.change(lambda state: replace(state, settings=settings, name=name))
        publisher.remove_former()
