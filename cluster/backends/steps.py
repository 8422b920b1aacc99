"""What a write does to the documents of an engine's collection, some at a time, and what that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from tercet.cluster.backends.candidates import DOCUMENTS_AT_ONCE, matching_documents
from tercet.cluster.backends.engine import WrittenEngineCollection
from tercet.cluster.backends.records import stored
from tercet.index.candidates import Document
from tercet.index.documents.conditions import Condition
from tercet.index.documents.metadata import MetadataChange
from tercet.index.documents.store import encode_id
from tercet.index.files.packed_bytes import PackedBytes
from tercet.index.live.operations import Delete, Operation, Update
from tercet.index.live.state import LiveState
from tercet.index.segments.rows import DocumentRows

Item = TypeVar("Item")

Steps = Callable[[WrittenEngineCollection], Iterable[tuple[Sequence[str], Operation]]]
"""Of a write: the documents that each concerns, and what it does."""


def deletions(
    ids: Sequence[str], condition: Condition | None = None
) -> Iterable[tuple[Sequence[str], Operation]]:
    """Removes documents of these ids, where a condition allows them."""
    for some in groups(ids, DOCUMENTS_AT_ONCE):
        yield some, Delete(_packed(some), condition)


def updates(
    ids: Sequence[str], change: MetadataChange, condition: Condition | None
) -> Iterable[tuple[Sequence[str], Operation]]:
    """Changes metadata of documents of these ids, where a condition allows them."""
    for some in groups(ids, DOCUMENTS_AT_ONCE):
        yield some, Update(_packed(some), change, condition)


def groups(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Items in order, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _packed(ids: Sequence[str]) -> PackedBytes:
    return PackedBytes.of(list(map(encode_id, ids)))


def matching(collection: WrittenEngineCollection, condition: Condition) -> list[str]:
    """The ids of the documents that a condition allows."""
    return [document.id for documents in pages(collection, condition) for document in documents]


def pages(collection: WrittenEngineCollection, condition: Condition | None) -> Iterable[list[Document]]:
    """The documents that a condition allows, some at a time."""
    after = None
    while True:
        with stored(collection.name):
            some = matching_documents(
                collection, after, DOCUMENTS_AT_ONCE, condition, collection.settings.fields
            )
        if some:
            yield some
            after = some[-1].id
        if len(some) < DOCUMENTS_AT_ONCE:
            return


def difference(
    before: LiveState, after: LiveState, position: int
) -> tuple[list[str], list[DocumentRows], list[DocumentRows]]:
    """The ids that are gone, the documents that they and changed ones were, and those of a position."""
    gone, removed, added = list[str](), list[DocumentRows](), list[DocumentRows]()
    for segment in before.segments:
        ids = segment.documents.ids
        there, stays = np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.bool_)
        for ordinal, rows, known in after.find(ids):
            there[known] = True
            stays[known] = after.segments[ordinal].positions[rows] < position
        if not stays.all():
            removed.append(segment.take(np.flatnonzero(~stays)))
        gone += [id.decode() for id in ids.take(np.flatnonzero(~there))]
    for segment in after.segments:
        rows = segment.rows_kept()
        rows = rows[segment.positions[rows] == position]
        if len(rows):
            added.append(segment.take(rows))
    return gone, removed, added
