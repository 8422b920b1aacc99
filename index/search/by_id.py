"""Where documents are, by their ids: in the one segment that has it, or one of each collection that does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from index.candidates import Document
from index.catalog.alike import names_of
from index.documents.store import encode_id
from index.errors import (
    AmbiguousDocumentError,
    DocumentNotFoundError,
    InvalidDocumentError,
    InvalidQueryError,
)
from index.segments.segment import Segment

NAMED = 10  # ids of missing documents in a message

DocumentPlace = tuple[int, int]
"""That of a segment, and a row of it."""


@dataclass(frozen=True, slots=True)
class ById:
    """The documents of a snapshot of this name and of its collection or alias.

    collections: of each segment, where these are of several, and then an id may be there several times; None
    where they are of one.
    """

    snapshot: str
    name: str
    segments: Sequence[Segment]
    collections: Sequence[str] | None = None

    def document(self, place: DocumentPlace) -> Document:
        """The stored document of a place, with its collection where there are several."""
        number, row = place
        document = self.segments[number].documents.get(row)
        if self.collections is None:
            return document
        return replace(document, collection=self.collections[number])

    def all(self, id: str) -> Iterator[DocumentPlace]:
        """Where documents of an id are, in order of collection; of one collection, one at most."""
        try:
            encoded = encode_id(id)
        except InvalidDocumentError:
            return  # no document can have this id
        for number, segment in enumerate(self.segments):
            row = segment.find(encoded)
            if row is not None:
                yield number, row
                if self.collections is None:
                    return

    def find(self, id: str, collection: str | None = None) -> DocumentPlace | None:
        """Where the document of an id is; None where it is not there.

        collection: its own, where there are several. Raises AmbiguousDocumentError where that is not said,
        and several have one.
        """
        if self.collections is None:
            return next(self.all(id), None)
        found = [each for each in self.all(id) if collection in (None, self.collections[each[0]])]
        if len(found) > 1:
            having = names_of([self.collections[number] for number, _ in found])
            raise AmbiguousDocumentError(
                f"document {id[:80]!r} is in collections {having}, all of which {self.name!r} means: say "
                "which, or ask that collection by its own name"
            )
        return found[0] if found else None

    def place(self, id: str, collection: str | None = None) -> DocumentPlace:
        """As `find`; raises InvalidQueryError where it is not there."""
        found = self.find(id, collection)
        if found is None:
            raise InvalidQueryError(
                f"document {id[:80]!r} is not in snapshot {self.snapshot} of {self.name!r}"
            )
        return found

    def places(self, ids: Sequence[str], collections: Sequence[str | None] | None) -> list[DocumentPlace]:
        """As `place`, of each."""
        known = [None] * len(ids) if collections is None else collections
        return [self.place(id, collection) for id, collection in zip(ids, known, strict=True)]

    def found(self, ids: Sequence[str]) -> dict[str, DocumentPlace]:
        """As `find`, of each; raises DocumentNotFoundError, which names those that are not there."""
        found = {id: self.find(id) for id in ids}
        missing = [id for id, place in found.items() if place is None]
        if missing:
            named = ", ".join(f"{id[:80]!r}" for id in missing[:NAMED])
            others = f" and {len(missing) - NAMED} others" if len(missing) > NAMED else ""
            raise DocumentNotFoundError(f"collection {self.name!r} has no document {named}{others}")
        return {id: place for id, place in found.items() if place is not None}
