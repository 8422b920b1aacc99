"""The counts of terms that routers were told, so that the next time they are told what changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from index.sparse.idf import CollectionIdf
from index.sparse.term_totals import TermCounts
from models.representations import Int32, Int64

KEPT = 4  # states of a collection; those of 250,000 terms take 4 MB each
COLLECTIONS = 16


@dataclass(frozen=True, slots=True)
class CountChange:
    """What is added to n(t) and M(t) of X terms int32[X], ascending: int64[X] each. since: the state that this
    leads from, None for no documents.
    """

    since: str | None
    terms: Int32
    frequencies: Int64
    masses: Int64


class ToldCounts:
    """The last ones of each collection, by state. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._collections: OrderedDict[str, OrderedDict[str, TermCounts]] = OrderedDict()

    def change(self, collection: str, state: str, idf: CollectionIdf, known: str | None) -> CountChange:
        """What leads to the counts of a state, from those of the state that is known where they are kept."""
        with self._lock:
            told = self._collections.setdefault(collection, OrderedDict())
            self._collections.move_to_end(collection)
            while len(self._collections) > COLLECTIONS:
                self._collections.popitem(last=False)
            counts, before = told.get(state), None if known is None else told.get(known)
        if counts is None:
            counts = idf.counts()
            with self._lock:
                told[state] = counts
                while len(told) > KEPT:
                    told.popitem(last=False)
        frequencies, masses = counts
        if before is not None:
            frequencies, masses = frequencies - before[0], masses - before[1]
        terms = np.flatnonzero((frequencies != 0) | (masses != 0))
        return CountChange(
            None if before is None else known, terms.astype(np.int32), frequencies[terms], masses[terms]
        )
