"""Documents in order of their ids, some at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from index.candidates import Document
from index.documents.conditions import Condition
from index.files.packed_bytes import first_not_below
from index.segments.segment import Segment

ROWS_AT_ONCE = 1024


def page_of(
    segments: Sequence[Segment], after: bytes, limit: int, condition: Condition | None
) -> list[Document]:
    """The first `limit` documents with ids after `after` by their bytes, of those that a condition allows."""
    following = (_ids_after(place, segment, after, condition) for place, segment in enumerate(segments))
    found = islice(heapq.merge(*following), limit)
    return [segments[place].documents.get(row) for _, place, row in found]


def _ids_after(
    place: int, segment: Segment, after: bytes, condition: Condition | None
) -> Iterator[tuple[bytes, int, int]]:
    """Id, the segment's place and row of each of its documents from there on."""
    store = segment.documents
    allowed = segment.allowed(condition)
    start = 0
    if after:  # no string lies between one and itself with a zero byte behind
        start = first_not_below(len(store), lambda rank: store.ids[int(store.id_order[rank])], after + b"\0")
    for first in range(start, len(store), ROWS_AT_ONCE):
        rows = store.id_order[first : first + ROWS_AT_ONCE]
        if allowed is not None:
            rows = rows[allowed.has(rows)]
        for id, row in zip(store.ids.take(rows), rows.tolist(), strict=True):
            yield id, place, row
