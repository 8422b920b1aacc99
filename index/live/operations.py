"""What can be written to a live collection: each operation gives a new state, and an entry for the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tercet.index.catalog.settings import CollectionSettings, require_kept
from tercet.index.documents.conditions import Condition
from tercet.index.documents.fields import columns_of
from tercet.index.documents.metadata import MetadataChange
from tercet.index.documents.partitions import PARTITION, kept_partition, stored_partitions
from tercet.index.documents.store import encode_document
from tercet.index.errors import (
    DocumentChangedError,
    DocumentNotFoundError,
    PartitionConflictError,
    PositionLostError,
)
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.ledger.records import NOTHING, LedgerEntry
from tercet.index.live.claims import Claims
from tercet.index.live.entries import encode_ids, encode_parts, encode_rows
from tercet.index.live.state import LiveState
from tercet.index.segments.later_columns import with_columns
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.models.representations import Int64

PUT = "put"
DELETE = "delete"
UPDATE = "update"


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
    """Takes a position, for a change that the ledger does not hold, or that earlier entries made.

    documents: that were concerned then.
    """

    documents: int = 0

    def apply(self, state: LiveState, position: int) -> Applied:
        return replace(unchanged(state, position), documents=self.documents)


@dataclass(frozen=True, slots=True)
class Put:
    """Adds documents of distinct ids, or replaces those that are there.

    entry: what the ledger holds of it. if_position: none of these may have been written after it. claims: of
    ids that other shards are about to get.
    """

    rows: DocumentRows
    entry: LedgerEntry
    if_position: int | None = None
    claims: Claims | None = None

    @staticmethod
    def of(rows: DocumentRows, if_position: int | None = None, claims: Claims | None = None) -> Put:
        """Makes the entry, too: in the caller's thread, as operations are carried out one after the other.

        Raises InvalidDocumentError for too large a one.
        """
        return Put(rows, LedgerEntry(PUT, encode_rows(rows)), if_position, claims)

    def apply(self, state: LiveState, position: int) -> Applied:
        """Raises DocumentChangedError, PositionLostError for an `if_position` that no write here has,
        PartitionConflictError for an id that another partition has, or InvalidDocumentError where a field was
        declared since the check.
        """
        if self.if_position is not None:
            _require_unchanged(state, self.rows.ids, self.if_position)
        rows = with_columns(self.rows, state.settings.fields)
        if self.claims is not None:
            self.claims.require_none(rows.ids)
        if state.settings.partitioned:
            _require_partitions(state, rows.ids, stored_partitions(rows.columns[PARTITION]))
        return Applied(state.put(rows, position), self.entry, len(rows))


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes the documents of these distinct ids; an id that is not there is no error. condition: over
    declared fields; documents that it does not allow stay.
    """

    ids: PackedBytes
    condition: Condition | None = None

    def apply(self, state: LiveState, position: int) -> Applied:
        """Counts the documents that were there."""
        known = []
        for ordinal, rows, matched in state.find(self.ids):
            allowed = None if self.condition is None else state.segments[ordinal].allowed(self.condition)
            known.append(matched if allowed is None else matched[allowed.has(rows)])
        count = sum(map(len, known))
        ids = self.ids
        # While a build is under way, it may bring those that are not there now.
        if state.deleted is None or self.condition is not None:
            if not count:
                return Applied(state, None, 0)
            ids = ids.gather(np.sort(np.concatenate(known)))
        return Applied(state.delete(ids, position), LedgerEntry(DELETE, encode_ids(ids)), count)


@dataclass(frozen=True, slots=True)
class Claim:
    """Notes ids that another shard is about to get documents of, or that it has got them; it changes no
    documents. owner: a name for the put. own, partitions: of documents of it that are about to come here.
    """

    ids: PackedBytes
    claims: Claims
    owner: str
    own: PackedBytes
    partitions: Sequence[bytes]
    ends: bool = False

    def apply(self, state: LiveState, position: int) -> Applied:
        """Raises PartitionConflictError where one of them is here, or one of its own in another partition."""
        if self.ends:
            self.claims.drop(self.ids, self.owner)
            return Applied(state, None, 0)
        for _, _, known in state.find(self.ids):
            raise _in_another(self.ids[int(known[0])])
        _require_partitions(state, self.own, self.partitions)
        self.claims.add(self.ids, self.owner)
        return Applied(state, None, 0)


@dataclass(frozen=True, slots=True)
class DeleteMatching:
    """Removes the documents that a condition over declared fields allows."""

    condition: Condition

    def apply(self, state: LiveState, position: int) -> Applied:
        """Counts the documents that were there."""
        return Delete(matching_ids(state, self.condition)).apply(state, position)


@dataclass(frozen=True, slots=True)
class Patch:
    """Changes a document's metadata; what the encoder made of it stays.

    if_position: it may not have been written after it.
    """

    id: bytes
    change: MetadataChange
    if_position: int | None = None

    def apply(self, state: LiveState, position: int) -> Applied:
        """Raises DocumentNotFoundError, DocumentChangedError, PositionLostError, or InvalidDocumentError for
        the metadata.
        """
        matches = state.find(PackedBytes.of([self.id]))
        if not matches:
            raise DocumentNotFoundError(
                f"document {self.id.decode()!r:.80} is not in collection {state.settings.name!r}"
            )
        ((ordinal, rows, _),) = matches
        changed = _changed(state.segments[ordinal], rows, self.change, state.settings)
        return Put.of(changed, self.if_position).apply(state, position)


@dataclass(frozen=True, slots=True)
class Update:
    """Changes the metadata of the documents of these distinct ids; what the encoder made of them stays.

    An id that is not there is no error. condition: over declared fields; documents that it does not allow are
    left as they are.
    """

    ids: PackedBytes
    change: MetadataChange
    condition: Condition | None = None

    def apply(self, state: LiveState, position: int) -> Applied:
        """Counts the documents that were changed. Raises InvalidDocumentError for what one would become."""
        left, parts = state, []
        for ordinal, rows, _ in state.find(self.ids):
            segment = state.segments[ordinal]
            allowed = None if self.condition is None else segment.allowed(self.condition)
            if allowed is not None:
                rows = rows[allowed.has(rows)]
            if len(rows):
                parts.append(_changed(segment, np.sort(rows), self.change, state.settings))
                left = left.put(parts[-1], position)
        if not parts:
            return Applied(state, None, 0)
        # Whole documents: a build may be adopted before the entry is carried out again.
        return Applied(left, LedgerEntry(UPDATE, encode_parts(parts)), sum(map(len, parts)))


def _changed(
    segment: Segment, rows: Int64, change: MetadataChange, settings: CollectionSettings
) -> DocumentRows:
    """Some documents of a segment with other metadata: rows of distinct documents, ascending."""
    documents = []
    for stored in map(segment.documents.get, rows.tolist()):
        metadata = change.of(stored.metadata)
        if settings.partitioned:
            metadata = kept_partition(stored.metadata, metadata)
        documents.append(replace(stored, metadata=metadata))
    return replace(
        segment.take(rows),
        contents=PackedBytes.of([encode_document(document)[1] for document in documents]),
        columns=columns_of(
            settings.fields,
            [document.id for document in documents],
            [document.metadata for document in documents],
        ),
    )


def matching_ids(state: LiveState, condition: Condition) -> PackedBytes:
    """The ids of the documents that a condition over declared fields allows."""
    ids = []
    for segment in state.segments:
        allowed = segment.allowed(condition)
        rows = segment.rows_kept() if allowed is None else allowed.rows
        ids.append(segment.documents.ids.gather(rows))
    return PackedBytes.concatenate(ids)


def _require_partitions(state: LiveState, ids: PackedBytes, partitions: Sequence[bytes]) -> None:
    """Raises PartitionConflictError where a document is there in another partition than its own of these."""
    for ordinal, found, known in state.find(ids):
        present = stored_partitions(state.segments[ordinal].columns[PARTITION].take(found))
        for number, partition in zip(known.tolist(), present, strict=True):
            if partition != partitions[number]:
                raise _in_another(ids[number])


def _in_another(id: bytes) -> PartitionConflictError:
    return PartitionConflictError(
        f"document {id.decode()!r:.80} is in another partition, and an id is in one: delete it, and put it "
        "again"
    )


def _require_unchanged(state: LiveState, ids: PackedBytes, if_position: int) -> None:
    if if_position > state.position:
        raise PositionLostError(
            f"if_position is {if_position}, and collection {state.settings.name!r} is at position "
            f"{state.position}: that write was lost, or is of another collection; read the documents again"
        )
    require_kept(state.settings, if_position)
    for ordinal, rows, known in state.find(ids):
        positions = state.segments[ordinal].positions[rows]
        later = np.flatnonzero(positions > if_position)
        if len(later):
            id = ids[int(known[later[0]])].decode()
            raise DocumentChangedError(
                f"document {id!r:.80} was written at position {positions[later[0]]}, after if_position "
                f"{if_position}; read it again"
            )
