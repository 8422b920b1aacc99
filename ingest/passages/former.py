"""Passages of former versions of documents, which the passages of their new versions replace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

from tercet.index.collection import Collection
from tercet.index.snapshot import Snapshot
from tercet.ingest.passages.split import SOURCE

Stored = tuple[str, Mapping[str, Any]]
"""A document's id and metadata."""
StoredPage = Callable[[str, int], Sequence[Stored]]
"""The documents that follow an id in order of ids, at most so many."""
PAGE = 100


class NewPassages:
    """The passages that documents of a source became."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def add(self, id: str, metadata: Mapping[str, Any]) -> None:
        """Notes one of them."""
        document = _document_of(id, metadata)
        if document is not None:
            self._ids.setdefault(document, set()).add(id)

    def former(self, page: StoredPage) -> list[str]:
        """The stored passages of the same documents that are not among these."""
        return [id for document, ids in self._ids.items() for id in _passages(document, ids, page) - ids]


def former_passages(stored: Snapshot, build: Collection) -> list[str]:
    """The passages in a snapshot that are of documents of which a build has others."""
    new, after = NewPassages(), None
    with closing(build.snapshot()) as built:
        while some := built.page(after, PAGE):
            for document in some:
                new.add(document.id, document.metadata)
            after = some[-1].id
    return new.former(lambda id, limit: [(each.id, each.metadata) for each in stored.page(id, limit)])


def _document_of(id: str, metadata: Mapping[str, Any]) -> str | None:
    """The document that a stored one is a passage of, if it is one.

    Ids and values of `source` are for anybody to choose, so all that the cutter gives must be there.
    """
    source = metadata.get(SOURCE)
    is_passage = id.startswith(f"{source}#") and {"start", "end"} <= metadata.keys()
    return source if is_passage and isinstance(source, str) else None


def _passages(document: str, new: set[str], page: StoredPage) -> set[str]:
    """The ids of all stored passages of a document; usually about as many as the new ones."""
    begin, stored = f"{document}#", set[str]()
    after, limit = begin, min(len(new) + 1, PAGE)
    while some := page(after, limit):
        stored |= {id for id, metadata in some if _document_of(id, metadata) == document}
        after, limit = some[-1][0], PAGE
        if not after.startswith(begin):
            break
    return stored
