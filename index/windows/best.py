"""Which window of a document matches a query best: the one that would score highest by itself."""

from __future__ import annotations

import numpy as np

from index.candidates import Weights, Window
from index.fusion import weighted_sum
from index.query import CheckedQuery
from index.scoring import Float64, dense_scores, lexical_scores, packed_maxsim
from index.segment import Segment
from index.windows.scores import scores_of_windows
from index.windows.store import WindowStore
from models.representations import Int64


def best_window(segment: Segment, row: int, query: CheckedQuery, weights: Weights) -> Window | None:
    """The window of highest weighted sum, of equal ones the first; None in a collection without windows.

    Words of BM25 are counted in whole documents: a search that weighs nothing else takes 1, 1, 1 here.
    """
    store = segment.windows
    if store is None:
        return None
    windows = store.of(row)
    best = 0
    if len(windows) > 1:
        used = weights if weights.dense or weights.sparse or weights.colbert else Weights()
        best = int(np.argmax(weighted_sum(_components(segment, store, windows, query), used)))
    return store.window(row, best)


def _components(segment: Segment, store: WindowStore, windows: Int64, query: CheckedQuery) -> Float64:
    """The three exact scores of windows of one document that has several, float64[n, 3]."""
    dense, tokens = query.dense, query.colbert
    vectors, token_vectors = segment.vectors, segment.token_vectors
    nothing = np.zeros(len(windows))
    return np.stack(
        [
            nothing
            if dense is None
            else scores_of_windows(windows, lambda some: dense_scores(dense, vectors, some)),
            lexical_scores(query.token_ids, query.weights, store.lexical, windows),
            nothing
            if tokens is None or token_vectors is None
            else packed_maxsim(tokens, token_vectors, windows, precise=True),
        ],
        axis=1,
    )
