"""The best documents of several windows each, by their dense vectors: the best window counts."""

from __future__ import annotations

import numpy as np

from index.candidates import DenseOptions
from index.dense.index import DenseIndex
from index.documents.row_set import RowSet
from index.windows.store import WindowStore
from models.representations import Float32, Int64


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
