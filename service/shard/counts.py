"""The counts of terms that routers were told, so that the next time they are told what changed."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np

from tercet.index.sparse.idf import CollectionIdf
from tercet.index.sparse.term_totals import TermCounts
from tercet.service.shard.records import CountChange

KEPT = 8  # states of a collection
MOST_BYTES = 128 << 20  # those of 250,000 terms take 4 MB each


class ToldCounts:
    """The last ones of each collection, by state. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: OrderedDict[tuple[str, str], TermCounts] = OrderedDict()

    def change(self, collection: str, state: str, idf: CollectionIdf, known: str | None) -> CountChange:
        """What leads to the counts of a state, from those of the state that is known where they are kept."""
        with self._lock:
            counts = self._told.get((collection, state))
            before = None if known is None else self._told.get((collection, known))
        if counts is None:
            counts = idf.counts()
            with self._lock:
                self._keep(collection, state, counts)
        frequencies, masses = counts
        if before is not None:
            frequencies, masses = frequencies - before[0], masses - before[1]
        terms = np.flatnonzero((frequencies != 0) | (masses != 0))
        return CountChange(
            None if before is None else known, terms.astype(np.int32), frequencies[terms], masses[terms]
        )

    def _keep(self, collection: str, state: str, counts: TermCounts) -> None:
        self._told[collection, state] = counts
        own = [key for key in self._told if key[0] == collection]
        for key in own[:-KEPT]:
            del self._told[key]
        while (
            len(self._told) > 1
            and sum(sum(each.nbytes for each in kept) for kept in self._told.values()) > MOST_BYTES
        ):
            self._told.popitem(last=False)
