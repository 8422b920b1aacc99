"""Documents in order of their ids, some at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from tercet.index.documents.conditions import Condition
from tercet.index.documents.store import DocumentStore
from tercet.index.files.packed_bytes import first_not_below
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64

ROWS_AT_ONCE = 1024


def page_of(
    segments: Sequence[Segment], starts: Sequence[bytes], limit: int, condition: Condition | None
) -> list[tuple[int, int]]:
    """The segments and rows of the first `limit` documents, of those that a condition allows, in order of
    their ids' bytes, equal ones in order of segment.

    starts: the least id that may come of each segment, as `starts_behind` gives them.
    """
    following = (
        _ids_from(ordinal, segment, start, condition)
        for ordinal, (segment, start) in enumerate(zip(segments, starts, strict=True))
    )
    return [(ordinal, row) for _, ordinal, row in islice(heapq.merge(*following), limit)]


def starts_behind(
    id: bytes | None, collection: str | None, segments: int, collections: Sequence[str] | None
) -> list[bytes]:
    """The least id that follows one in each of so many segments; the first, b"", for None.

    collections: of the segments, in order, where they are of several: a document of the same id follows where
    its collection does, if that is given.
    """
    if id is None:
        return [b""] * segments
    behind = id + b"\0"  # no string lies between one and itself with a zero byte behind
    if collections is None or collection is None:
        return [behind] * segments
    return [id if name > collection else behind for name in collections]


def rows_from(store: DocumentStore, least: bytes) -> Int64:
    """The rows of a segment from an id on, in order of their ids."""
    start = 0
    if least:
        start = first_not_below(len(store), lambda rank: store.ids[int(store.id_order[rank])], least)
    return store.id_order[start:]


def _ids_from(
    ordinal: int, segment: Segment, least: bytes, condition: Condition | None
) -> Iterator[tuple[bytes, int, int]]:
    """Id, the segment's place and row of each of its documents from an id on."""
    allowed, following = segment.allowed(condition), rows_from(segment.documents, least)
    for first in range(0, len(following), ROWS_AT_ONCE):
        rows = following[first : first + ROWS_AT_ONCE]
        if allowed is not None:
            rows = rows[allowed.has(rows)]
        for id, row in zip(segment.documents.ids.take(rows), rows.tolist(), strict=True):
            yield id, ordinal, row
