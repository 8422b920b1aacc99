"""The stored documents of a snapshot: found by id, in pages and in order, counted, and as they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tercet.index.candidates import Document
from tercet.index.catalog.alike import names_of
from tercet.index.catalog.settings import CollectionSettings
from tercet.index.documents.conditions import Condition, checked_condition
from tercet.index.documents.filters import Filter
from tercet.index.documents.store import DocumentStore, encode_id
from tercet.index.errors import (
    AmbiguousDocumentError,
    DocumentNotFoundError,
    InvalidDocumentError,
    InvalidQueryError,
    SearchIndexError,
)
from tercet.index.reading.examples import Example, examples_query
from tercet.index.reading.ordered import Order, Place, PlacedDocument, check_order, ordered_page
from tercet.index.reading.pages import page_of, starts_behind
from tercet.index.segments.parts import rows_in_parts
from tercet.index.segments.rows import DocumentRows
from tercet.index.segments.segment import Segment
from tercet.index.segments.stored import StoredQuery, StoredRepresentations
from tercet.models.representations import Int64

DocAddress = tuple[int, int]
"""The ordinal of a segment, and a row of it."""


class StoredDocuments:
    """The documents of some segments, in order of collection where they are of several.

    name: of the snapshot. collections: of each segment, where these are of several, and then an id may be
    there several times; None where they are of one. documents: how many there are.
    """

    def __init__(
        self,
        name: str,
        settings: CollectionSettings,
        segments: Sequence[Segment],
        collections: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.documents = sum(segment.documents_kept for segment in segments)
        self._collections = collections
        self._segments: tuple[Segment, ...] | None = tuple(segments)

    @property
    def is_of_several(self) -> bool:
        """Whether it is of several collections."""
        return self._collections is not None

    def close(self) -> None:
        """Lets go of the files; searches under way still finish, later ones raise SearchIndexError."""
        self._segments = None

    def get(self, id: str) -> Document | None:
        """The stored document of an id, or None.

        Raises AmbiguousDocumentError where several of the collections that this is of have one.
        """
        address = self._find(id)
        return None if address is None else self._document(address)

    def get_all(self, ids: Sequence[str]) -> list[list[Document]]:
        """The stored documents of each id: one at most of each collection."""
        return [[self._document(address) for address in self._all(id)] for id in ids]

    def count(self, filter: Filter | None = None) -> int:
        """How many documents a filter over declared fields allows; all of them without one.

        Raises InvalidQueryError for a filter that this collection cannot answer.
        """
        condition = self._condition(filter)
        allowed = [(segment, segment.allowed(condition)) for segment in self._opened()]
        return sum(segment.documents_kept if rows is None else len(rows) for segment, rows in allowed)

    def page(
        self, after: str | None, limit: int, filter: Filter | None = None, after_collection: str | None = None
    ) -> list[Document]:
        """Up to `limit` documents in order of their ids' UTF-8 bytes, from the first that follows `after` on.

        filter: over declared fields; the documents that it allows. after_collection: that of `after`, where
        this is of several; documents of its id in later ones follow. Raises InvalidQueryError for a filter
        that cannot be answered, InvalidDocumentError for an `after` that no document can have as its id.
        """
        id, segments = None if after is None else encode_id(after), self._opened()
        starts = starts_behind(id, after_collection, len(segments), self._collections)
        return list(map(self._document, page_of(segments, starts, limit, self._condition(filter))))

    def ordered_page(
        self, order: Order, after: Place | None, limit: int, filter: Filter | None = None
    ) -> list[PlacedDocument]:
        """Up to `limit` documents in the order of a declared field, from the first that follows a place on.

        filter: as for `page`. Raises InvalidQueryError for one, or a field, that this collection has not.
        """
        check_order(order, self.settings.fields)
        condition = self._condition(filter)
        return ordered_page(self._opened(), order, after, limit, condition, self._collections)

    def read(self, placed: PlacedDocument) -> Document:
        """The document of a place. Raises DamagedIndexError."""
        return self._document((placed.segment, placed.row))

    def rows(self, documents: int, tokens: int, filter: Filter | None = None) -> Iterator[DocumentRows]:
        """All documents that a filter allows as they are stored, segment by segment, in parts.

        documents, tokens: of a part at most; a document of more token vectors is a part by itself. filter: as
        for `page`.
        """
        for segment, rows in self._allowed(filter):
            yield from rows_in_parts(segment, rows, documents, tokens)

    def sizes(self, filter: Filter | None = None) -> Iterator[tuple[DocumentStore, Int64, Int64]]:
        """Of each segment its documents, the rows int64[n] that a filter allows without deleted ones, and how
        many token vectors each has, int64[n]; 1 where they are not stored. filter: as for `page`.
        """
        for segment, rows in self._allowed(filter):
            yield segment.documents, rows, segment.tokens_of(rows)

    def stored(self, id: str) -> tuple[Document, StoredRepresentations] | None:
        """A document and its stored representations; None where it is not there. Raises as `get`."""
        address = self._find(id)
        return None if address is None else (self._document(address), self._stored(address))

    def stored_query(self, id: str, window: int = 0, collection: str | None = None) -> StoredQuery:
        """What is stored of a document as a query for others like it: of its only text, or of one window.

        collection: the document's, where this is of several.
        Raises DocumentNotFoundError, InvalidQueryError where it has no such window, and as `get`.
        """
        address = self._find(id, collection)
        if address is None:
            raise DocumentNotFoundError(f"collection {self.settings.name!r} has no document {id[:600]!r}")
        return StoredQuery.of(self._document(address), self._stored(address), window)

    def examples_query(self, like: Sequence[str], unlike: Sequence[str] = ()) -> StoredQuery:
        """A query for documents like some, unlike others: see `index/reading/examples.py`. Its text is theirs
        that it shall be like, one after the other.

        Raises DocumentNotFoundError, which names those that are not there, InvalidQueryError for no ids, too
        many, or one in both, and as `get`.
        """
        return examples_query(self.settings.name, like, unlike, self.examples)

    def examples(self, ids: Sequence[str], most_tokens: int) -> list[tuple[Example, str] | None]:
        """What `examples_query` takes of each document, with so many token vectors at most, and its text;
        None of one that is not there. Raises as `get`.
        """
        segments, examples = self._opened(), list[tuple[Example, str] | None]()
        for address in map(self._find, ids):
            if address is None:
                examples.append(None)
            else:
                example = Example.of(segments[address[0]], address[1], most_tokens)
                examples.append((example, self._document(address).encoded_text))
        return examples

    def encodings_of(
        self, document_ids: Sequence[str], collections: Sequence[str | None] | None = None
    ) -> int:
        """The encoded texts of these documents: all their windows, or one of each in a collection without.

        collections: of the documents, where this is of several. Raises InvalidQueryError for an unknown id.
        """
        segments = self._opened()
        addresses = self._addresses(document_ids, collections)
        return sum(len(segments[ordinal].texts_of(np.array([row]))[0]) for ordinal, row in addresses)

    def _addresses(self, ids: Sequence[str], collections: Sequence[str | None] | None) -> list[DocAddress]:
        """The addresses of the documents of these ids.

        collections: of the documents, where there are several. Raises InvalidQueryError for one that is not
        there, and as `get`.
        """
        known = [None] * len(ids) if collections is None else collections
        addresses = []
        for id, collection in zip(ids, known, strict=True):
            address = self._find(id, collection)
            if address is None:
                raise InvalidQueryError(
                    f"document {id[:80]!r} is not in snapshot {self.name} of {self.settings.name!r}"
                )
            addresses.append(address)
        return addresses

    def _find(self, id: str, collection: str | None = None) -> DocAddress | None:
        """The address of the document of an id; None where it is not there.

        collection: its own, where there are several. Raises AmbiguousDocumentError where that is not said,
        and several have one.
        """
        addresses = [*self._all(id, collection)]
        if len(addresses) > 1 and self._collections is not None:
            raise ambiguous(id, [self._collections[ordinal] for ordinal, _ in addresses], self.settings.name)
        return addresses[0] if addresses else None

    def _all(self, id: str, collection: str | None = None) -> Iterator[DocAddress]:
        """The addresses of an id's documents, in order of collection; of one collection, one at most."""
        segments = self._opened()
        try:
            encoded = encode_id(id)
        except InvalidDocumentError:
            return  # no document can have this id
        for ordinal, segment in enumerate(segments):
            if self._collections is not None and collection not in (None, self._collections[ordinal]):
                continue
            row = segment.find(encoded)
            if row is not None:
                yield ordinal, row
                if self._collections is None:
                    return

    def _document(self, address: DocAddress) -> Document:
        """The stored document at an address, with its collection where there are several."""
        ordinal, row = address
        document = self._opened()[ordinal].documents.get(row)
        if self._collections is None:
            return document
        return replace(document, collection=self._collections[ordinal])

    def _stored(self, address: DocAddress) -> StoredRepresentations:
        return StoredRepresentations.of(self._opened()[address[0]].take(np.array([address[1]])))

    def _opened(self) -> tuple[Segment, ...]:
        if self._segments is None:
            raise SearchIndexError(f"snapshot {self.name} of {self.settings.name!r} is closed; open another")
        return self._segments

    def _allowed(self, filter: Filter | None) -> Iterator[tuple[Segment, Int64]]:
        """Each segment and the rows of it that a filter allows, ascending. Raises InvalidQueryError."""
        condition = self._condition(filter)
        for segment in self._opened():
            allowed = segment.allowed(condition)
            yield segment, segment.rows_kept() if allowed is None else allowed.rows

    def _condition(self, filter: Filter | None) -> Condition | None:
        """A filter as segments take it. Raises InvalidQueryError where it does not fit the fields."""
        return None if filter is None else checked_condition(filter, self.settings.fields)


def ambiguous(id: str, collections: Sequence[str], alias: str) -> AmbiguousDocumentError:
    """What is said where several collections that an alias means have a document of an id."""
    return AmbiguousDocumentError(
        f"document {id[:80]!r} is in collections {names_of(collections)}, all of which {alias!r} means: say "
        "which, or ask that collection by its own name"
    )
