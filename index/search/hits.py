"""Hits as they are returned: documents, with their scores and the windows that match best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tercet.index.candidates import Hit, Scores, Weights
from tercet.index.search.best_window import best_windows
from tercet.index.search.query import CheckedQuery
from tercet.index.search.ranking import Ranked
from tercet.index.segments.segment import Segment


def hits_of(
    segments: Sequence[Segment],
    ranked: Ranked,
    query: CheckedQuery,
    weights: Weights,
    *,
    contents: bool,
    collections: Sequence[str] | None = None,
) -> list[Hit]:
    """The ranked candidates; with their documents' contents, or else with their ids alone.

    collections: of the segments, where they are of several.
    """
    candidates = ranked.candidates
    windows = best_windows(segments, candidates, query, weights, ranked.late)
    columns = map(np.ndarray.tolist, (candidates.segments, candidates.rows, ranked.sums, ranked.components))
    hits = []
    for ordinal, row, total, components, window in zip(*columns, windows, strict=True):
        dense, sparse, late_interaction, *others = components
        scores = Scores(
            dense,
            sparse,
            None if query.colbert is None else late_interaction,
            None if query.bm25 is None else others[0],
            None if candidates.boost is None else others[-1],
        )
        documents = segments[ordinal].documents
        document = documents.get(row) if contents else documents.name(row)
        if collections is not None:
            document = replace(document, collection=collections[ordinal])
        hits.append(Hit(document, total, scores, window))
    return hits
