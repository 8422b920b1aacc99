"""The idf of a collection in an engine: terms are counted over the lexical weights of all documents."""

from __future__ import annotations

import logging
import time

import numpy as np

from tercet.cluster.backends.engine import EngineCollection
from tercet.index.sparse.idf import CollectionIdf
from tercet.index.sparse.left_counts import LeftCounts
from tercet.index.sparse.term_statistics import TermStatistics
from tercet.service.exceptions import BackendError

TELL_SECONDS = 10.0  # between two lines of a counting that takes long

log = logging.getLogger("tercet")


def counted_idf(collection: EngineCollection) -> CollectionIdf:
    """Reads all lexical weights. Raises BackendError."""
    size = collection.exported.settings.vocabulary_size
    frequencies, masses = np.zeros(size, np.int64), np.zeros(size, np.int64)
    documents, told = 0, time.monotonic()
    for rows in collection.lexical():
        sound = (rows.token_ids >= 0) & (rows.token_ids < size) & (rows.weights > 0)
        if not (sound & np.isfinite(rows.weights)).all():
            raise BackendError(
                f"{collection.name} has a lexical weight that is not above 0, or of a token outside its "
                f"vocabulary of {size}; export it again"
            )
        counted = TermStatistics.of(rows, size)
        frequencies[counted.terms] += counted.frequencies
        masses[counted.terms] += counted.masses
        documents += len(rows)
        if time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            log.info("%s: the terms of %d documents are counted", collection.name, documents)
    terms = np.flatnonzero(frequencies)
    statistics = TermStatistics(terms.astype(np.int32), frequencies[terms].astype(np.int32), masses[terms])
    return CollectionIdf(documents, [LeftCounts(statistics, _none_is_deleted)], size)


def _none_is_deleted(counts: TermStatistics, rows: object) -> TermStatistics:
    return counts
