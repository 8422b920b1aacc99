"""Which window of a document matches a query best: the one that would score highest by itself."""

from __future__ import annotations

import numpy as np

from index.candidates import Weights, Window
from index.fusion import relative_sum
from index.scoring import dense_scores, lexical_scores
from index.search.query import CheckedQuery
from index.segments.segment import Segment
from index.windows.scores import scores_of_windows
from index.windows.store import WindowStore
from models.representations import Float64, Int64


def best_window(
    segment: Segment, row: int, query: CheckedQuery, weights: Weights, late: Float64
) -> Window | None:
    """The window of highest weighted sum, of equal ones the first.

    late: float64[n], the exact `s_mul` of the document's n windows. None in a collection without windows, and
    for a query that shares no side with it but BM25, whose words are counted in whole documents.
    """
    store = segment.windows
    if store is None:
        return None
    used = _used(weights, query, segment)
    if used is None:
        return None
    windows = store.of(row)
    best = 0
    if len(windows) > 1:
        best = int(np.argmax(relative_sum(_components(segment, store, windows, query, late), used)))
    return store.window(row, best)


def _used(weights: Weights, query: CheckedQuery, segment: Segment) -> Weights | None:
    """The weights of the sides that both query and collection have, or 1 for each of these where they are 0.

    None where there is no such side.
    """
    there = Weights(
        float(query.dense is not None),
        float(len(query.token_ids) > 0),
        float(query.colbert is not None and segment.token_vectors is not None),
    )
    used = Weights(
        weights.dense * there.dense, weights.sparse * there.sparse, weights.colbert * there.colbert
    )
    return next((each for each in (used, there) if each.dense or each.sparse or each.colbert), None)


def _components(
    segment: Segment, store: WindowStore, windows: Int64, query: CheckedQuery, late: Float64
) -> Float64:
    """The three exact scores of windows of one document that has several, float64[n, 3]."""
    dense, vectors = query.dense, segment.vectors
    nothing = np.zeros(len(windows))
    return np.stack(
        [
            nothing
            if dense is None
            else scores_of_windows(windows, lambda some: dense_scores(dense, vectors, some)),
            lexical_scores(query.token_ids, query.weights, store.lexical, windows),
            late,
        ],
        axis=1,
    )
