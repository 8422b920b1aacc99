"""The best documents of one segment by their dense vectors; of a document's windows the best counts."""

from __future__ import annotations

import numpy as np

from tercet.index.candidates import DenseOptions
from tercet.index.dense.expectation import likely_at_most
from tercet.index.documents.row_set import RowSet
from tercet.index.segments.segment import Segment
from tercet.models.representations import Float32, Int64

# Up to so large a share of deleted rows a search asks for more and leaves them out; a filter for the others
# would cost it more.
FEW_DELETED = 0.25


def search_segment(
    segment: Segment, query: Float32, k: int, allowed: RowSet | None, options: DenseOptions
) -> tuple[Int64, Float32]:
    """The k documents of highest `s_dense`, as `DenseIndex.search`; none that is deleted.

    allowed: what `Segment.allowed` gives for a condition, or None for all that are not deleted.
    """
    deleted = len(segment) - segment.documents_kept
    if segment.kept is None or allowed is not None or deleted > FEW_DELETED * len(segment):
        return _search(segment, query, k, segment.allowed(None) if allowed is None else allowed, options)
    count = k + min(deleted, likely_at_most(k * deleted / segment.documents_kept))
    while True:
        rows, scores = _search(segment, query, count, None, options)
        kept = segment.kept[rows]
        if np.count_nonzero(kept) >= min(k, segment.documents_kept) or count >= len(segment):
            return rows[kept], scores[kept]
        count = min(2 * count, len(segment))


def _search(
    segment: Segment, query: Float32, k: int, allowed: RowSet | None, options: DenseOptions
) -> tuple[Int64, Float32]:
    """The k allowed documents of highest `s_dense`, deleted or not; None allows all.

    Windows are asked for until so many documents are among them: exact where the index is, which proposes all
    that tie with its last window, and so with the last document.
    """
    index, store = segment.dense_index, segment.windows
    if store is None or store.undivided:
        return index.search(query, k, allowed, options)
    documents, windows = len(segment), len(store)
    allowed_windows = None
    if allowed is not None:
        allowed_windows = store.windows_of(allowed)
        documents, windows = len(allowed), len(allowed_windows)
    wanted = min(k, documents)
    count = min(2 * wanted, windows)
    while True:
        nearest, scores = index.search(query, count, allowed_windows, options)
        rows, first = np.unique(store.documents_of(nearest), return_index=True)
        if len(rows) >= wanted or count >= windows:
            order = np.argsort(first)  # the best window of a document is the first of it
            return rows[order], scores[first[order]]
        count = min(windows, count * max(2, -(-wanted // max(1, len(rows)))))
