"""A segment's documents in parts of bounded size, on their way into another or out of the index."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64

DOCUMENTS_AT_ONCE = 1_024
TOKENS_AT_ONCE = 262_144  # token vectors; a document stays whole


def rows_in_parts(
    segment: Segment, rows: Int64, documents: int | None = None, tokens: int | None = None
) -> Iterator[DocumentRows]:
    """The documents of rows int64[n], in order.

    documents, tokens: of a part at most, by default DOCUMENTS_AT_ONCE and TOKENS_AT_ONCE.
    """
    documents, tokens = documents or DOCUMENTS_AT_ONCE, tokens or TOKENS_AT_ONCE
    ends = np.cumsum(segment.tokens_of(rows))
    start = 0
    while start < len(rows):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + tokens, "right"))
        stop = min(max(stop, start + 1), start + documents)
        yield segment.take(rows[start:stop])
        start = stop
