"""Scores of documents that have several windows: the best window counts.

`s_dense = max_w <q, p_w>` and `s_mul = max_w s_mul(q, p_w)` over the windows w of a document p. `s_lex` takes
the largest weight of each term in any window, which the forward rows of documents hold already.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from index.candidates import DenseOptions
from index.dense.index import DenseIndex
from index.documents.row_set import RowSet
from index.windows.store import WindowStore
from models.representations import Float32, Float64, Int64, offsets_of, ragged_positions

WINDOWS_AT_ONCE = 8192

Scorer = Callable[[Int64], Float64]
"""From windows int64[n] to their scores float64[n]."""


def scores_of_windows(windows: Int64, score: Scorer) -> Float64:
    """The score of each window, a bounded number of them at a time."""
    starts = range(0, len(windows), WINDOWS_AT_ONCE)
    parts = [score(windows[start : start + WINDOWS_AT_ONCE]) for start in starts]
    return np.concatenate([np.empty(0), *parts])


def best_of_windows(store: WindowStore, rows: Int64, score: Scorer) -> Float64:
    """The largest score among the windows of each document, float64[K]."""
    if store.undivided:
        return scores_of_windows(rows, score)
    if len(rows) == 0:
        return np.empty(0)
    starts = offsets_of(store.offsets[rows + 1] - store.offsets[rows])[:-1]
    scores = scores_of_windows(ragged_positions(store.offsets, rows), score)
    best: Float64 = np.maximum.reduceat(scores, starts)
    return best


def search_documents(
    index: DenseIndex,
    store: WindowStore,
    query: Float32,
    k: int,
    allowed: RowSet | None,
    options: DenseOptions,
) -> tuple[Int64, Float32]:
    """The k documents whose best window has the largest inner product with float32[D].

    Windows are asked for until so many documents are among them: exact where the index is. allowed: the
    documents that may be returned, or None for all. Returns as `DenseIndex.search`, which proposes all that
    tie with its last window, and so with the last document.
    """
    if store.undivided:
        return index.search(query, k, allowed, options)
    documents, windows = len(store.offsets) - 1, len(store)
    allowed_windows = None
    if allowed is not None:
        allowed_windows = store.windows_of(allowed)
        documents, windows = len(allowed), len(allowed_windows)
    wanted = min(k, documents)
    asked = min(2 * wanted, windows)
    while True:
        found, scores = index.search(query, asked, allowed_windows, options)
        rows, first = np.unique(store.documents_of(found), return_index=True)
        if len(rows) >= wanted or asked >= windows:
            order = np.argsort(first)  # the best window of a document is the first of it
            return rows[order], scores[first[order]]
        asked = min(windows, asked * max(2, -(-wanted // max(1, len(rows)))))
