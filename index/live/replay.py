"""The ledger's entries carried out once more, when a collection is opened that was not closed.

Many at once, each document as the last of them left it: one by one, each in a segment in memory as it was
when it was written, thousands of small writes would take minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tercet.index.catalog.settings import CollectionSettings
from tercet.index.errors import DamagedIndexError
from tercet.index.files.packed_bytes import PackedBytes, distinct
from tercet.index.ledger.records import NOTHING, LedgerEntry
from tercet.index.live.entries import decode_ids, decode_parts, decode_rows, with_stored_fields
from tercet.index.live.operations import DELETE, UPDATE
from tercet.index.live.state import JOINED_BYTES, LiveState
from tercet.index.segments.rows import DocumentRows

Event = tuple[int, PackedBytes, DocumentRows | None]
"""A position, and the ids of documents that were put then, with these, or the ids that were deleted."""


def replay(state: LiveState, entries: Iterable[tuple[int, LedgerEntry]]) -> LiveState:
    """The state after entries that follow it, each with its position. Raises DamagedIndexError."""
    events: list[Event] = []
    waiting_bytes, position = 0, state.position
    for position, entry in entries:
        events += _events(entry, position, state.settings)
        waiting_bytes += len(entry.payload)
        if waiting_bytes > JOINED_BYTES:
            waiting_bytes = 0
            # A document that was written while a field was declared, and has another type there, comes again.
            with suppress(DamagedIndexError):
                state, events = _after(state, events), []
    return replace(_after(state, events), position=position)


def _events(entry: LedgerEntry, position: int, settings: CollectionSettings) -> Iterator[Event]:
    if entry.kind == DELETE:
        yield position, decode_ids(entry.payload, settings), None
    elif entry.kind != NOTHING:
        whole = entry.kind != UPDATE
        read = [decode_rows(entry.payload, settings)] if whole else decode_parts(entry.payload, settings)
        yield from ((position, rows.ids, rows.written_at(position)) for rows in read)


def _after(state: LiveState, events: Sequence[Event]) -> LiveState:
    """With each document as the last event that has its id left it."""
    if not events:
        return state
    ids = PackedBytes.concatenate([some for _, some, _ in events])
    is_put = np.repeat([rows is not None for *_, rows in events], [len(some) for _, some, _ in events])
    first, numbers = distinct(ids)
    last = np.empty(len(first), np.int64)
    last[numbers] = np.arange(len(ids))  # of equal numbers the last is what stays
    indices = (np.cumsum(is_put) - 1)[np.sort(last[is_put[last]])]
    left = None
    if len(indices):
        put = DocumentRows.concatenate([rows for *_, rows in events if rows is not None])
        left = with_stored_fields(put.take(indices), state.settings)
    return state.replaced(ids.gather(first), left, events[-1][0])
