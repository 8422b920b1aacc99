"""What can be written to a live collection: each operation gives a new state, and an entry for the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from index.documents.conditions import Condition
from index.documents.fields import columns_of
from index.documents.metadata import merged
from index.documents.store import encode_document
from index.errors import DocumentChangedError, DocumentNotFoundError
from index.files.packed_bytes import PackedBytes
from index.ledger.records import NOTHING, LedgerEntry
from index.live.entries import decode_ids, decode_rows, encode_ids, encode_rows
from index.live.state import LiveState
from index.segments.rows import DocumentRows

PUT = "put"
DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Applied:
    """The state after an operation, its entry in the ledger, and how many documents it concerned.

    entry is None where nothing changed; the state is then the one before.
    """

    state: LiveState
    entry: LedgerEntry | None
    documents: int


def unchanged(state: LiveState, position: int) -> Applied:
    """An operation that takes a position and changes nothing."""
    return Applied(replace(state, position=position), LedgerEntry(NOTHING, b""), 0)


class Operation(Protocol):
    """Something to be written."""

    def apply(self, state: LiveState, position: int) -> Applied:
        """Carries it out on a state, as the operation of this position. Raises where it cannot be."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Takes a position, for a change that the ledger does not hold."""

    def apply(self, state: LiveState, position: int) -> Applied:
        """Changes nothing."""
        return unchanged(state, position)


@dataclass(frozen=True, slots=True)
class Put:
    """Adds documents of distinct ids, or replaces those that are there.

    if_position: none of these may have been written after it.
    """

    rows: DocumentRows
    if_position: int | None = None

    def apply(self, state: LiveState, position: int) -> Applied:
        """Raises DocumentChangedError."""
        if self.if_position is not None:
            _require_unchanged(state, self.rows.ids, self.if_position)
        entry = LedgerEntry(PUT, encode_rows(self.rows))
        return Applied(state.put(self.rows, position), entry, len(self.rows))


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes the documents of these distinct ids; an id that is not there is no error."""

    ids: PackedBytes

    def apply(self, state: LiveState, position: int) -> Applied:
        """Counts the documents that were there."""
        known = [found for _, _, found in state.find(self.ids)]
        count = sum(map(len, known))
        ids = self.ids
        if state.deleted is None:  # else a build may bring those that are not there now
            if not count:
                return Applied(state, None, 0)
            ids = ids.gather(np.sort(np.concatenate(known)))
        return Applied(state.delete(ids, position), LedgerEntry(DELETE, encode_ids(ids)), count)


@dataclass(frozen=True, slots=True)
class DeleteMatching:
    """Removes the documents that a condition over declared fields allows."""

    condition: Condition

    def apply(self, state: LiveState, position: int) -> Applied:
        """Counts the documents that were there."""
        ids = []
        for segment in state.segments:
            allowed = segment.allowed(self.condition)
            rows = segment.rows_kept() if allowed is None else allowed.rows
            ids.append(segment.documents.ids.gather(rows))
        return Delete(PackedBytes.concatenate(ids)).apply(state, position)


@dataclass(frozen=True, slots=True)
class Patch:
    """Replaces a document's metadata, or merges something into it; what the encoder made of it stays.

    if_position: it may not have been written after it. merge: as a JSON Merge Patch (RFC 7396).
    """

    id: bytes
    metadata: Mapping[str, Any]
    if_position: int | None = None
    merge: bool = False

    def apply(self, state: LiveState, position: int) -> Applied:
        """Raises DocumentNotFoundError, DocumentChangedError, or InvalidDocumentError for the metadata."""
        places = state.find(PackedBytes.of([self.id]))
        if not places:
            raise DocumentNotFoundError(
                f"document {self.id.decode()!r:.80} is not in collection {state.settings.name!r}"
            )
        ((place, rows, _),) = places
        segment = state.segments[place]
        stored = segment.take(rows)
        document = segment.documents.get(int(rows[0]))
        metadata = merged(document.metadata, self.metadata) if self.merge else self.metadata
        document = replace(document, metadata=metadata)
        changed = replace(
            stored,
            contents=PackedBytes.of([encode_document(document).content]),
            columns=columns_of(state.settings.fields, [document.id], [metadata]),
        )
        return Put(changed, self.if_position).apply(state, position)


def replay(state: LiveState, entry: LedgerEntry, position: int) -> LiveState:
    """Carries out what the ledger holds of an operation, once more. Raises DamagedIndexError."""
    if entry.kind == NOTHING:
        return replace(state, position=position)
    if entry.kind == DELETE:
        return state.delete(decode_ids(entry.payload, state.settings), position)
    return state.put(decode_rows(entry.payload, state.settings), position)


def _require_unchanged(state: LiveState, ids: PackedBytes, if_position: int) -> None:
    for place, rows, known in state.find(ids):
        positions = state.segments[place].positions[rows]
        later = np.flatnonzero(positions > if_position)
        if len(later):
            id = ids[int(known[later[0]])].decode()
            raise DocumentChangedError(
                f"document {id!r:.80} was written at position {positions[later[0]]}, after if_position "
                f"{if_position}; read it again"
            )
