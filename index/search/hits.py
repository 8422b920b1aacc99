"""Hits as they are returned: documents, with their scores and the windows that match best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from index.candidates import Hit, Scores, Weights
from index.search.best_window import best_window
from index.search.query import CheckedQuery
from index.search.ranking import Ranked
from index.search.retrieval import Candidates
from index.segments.segment import Segment


def hits_of(
    segments: Sequence[Segment],
    found: Candidates,
    ranked: Ranked,
    query: CheckedQuery,
    weights: Weights,
    *,
    contents: bool,
    collections: Sequence[str] | None = None,
) -> list[Hit]:
    """The ranked ones of the candidates; with their documents' contents, or else with their ids alone.

    collections: of the segments, where they are of several.
    """
    columns = (found.segments[ranked.places], found.rows[ranked.places], ranked.sums, ranked.components)
    hits = []
    for number, (place, row, total, components) in enumerate(
        zip(*map(np.ndarray.tolist, columns), strict=True)
    ):
        segment = segments[place]
        dense, sparse, late_interaction, *others = components
        scores = Scores(
            dense,
            sparse,
            None if query.colbert is None else late_interaction,
            None if query.bm25 is None else others[0],
            None if found.boost is None else others[-1],
        )
        document = segment.documents.get(row) if contents else segment.documents.name(row)
        if collections is not None:
            document = replace(document, collection=collections[place])
        window = best_window(segment, row, query, weights, ranked.late.of(number))
        hits.append(Hit(document, total, scores, window))
    return hits
