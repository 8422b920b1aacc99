"""Stored documents as a query: one of them, or several as examples of what is wanted and what is not."""

from __future__ import annotations

from dataclasses import dataclass

from tercet.index.candidates import Weights
from tercet.index.errors import InvalidQueryError
from tercet.index.segments.stored import StoredQuery
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.exceptions import InvalidRequestError


@dataclass(frozen=True, slots=True)
class LikeDocument:
    """A stored document as the query, or one of its windows; itself it is no hit.

    characters: of its text at most, where BM25 is to read it. collection: its own, where several are searched
    as one.
    """

    id: str
    window: int = 0
    characters: int | None = None
    collection: str | None = None


@dataclass(frozen=True, slots=True)
class LikeExamples:
    """Stored documents that hits shall be like, and others that they shall be unlike; none of them is a hit.

    characters: of the texts of the first together at most, where BM25 is to read them.
    """

    like: tuple[str, ...]
    unlike: tuple[str, ...] = ()
    characters: int | None = None


Like = LikeDocument | LikeExamples


def ids_of(query: Like) -> tuple[str, ...]:
    """The documents that are no hits."""
    return (query.id,) if isinstance(query, LikeDocument) else (*query.like, *query.unlike)


def stored_query(
    query: Like, param: str, snapshot: ReadableSnapshot, weights: Weights
) -> tuple[StoredQuery, str | None]:
    """The query that documents make, and its text where BM25 may read it.

    Raises DocumentNotFoundError, AmbiguousDocumentError, or InvalidRequestError, which `param` names, for a
    window that a document does not have, a document that is wanted and unwanted, and a text that is too long
    for BM25.
    """
    is_document = isinstance(query, LikeDocument)
    try:
        if isinstance(query, LikeDocument):
            stored = snapshot.stored_query(query.id, query.window, query.collection)
        else:
            stored = snapshot.examples_query(query.like, query.unlike)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), f"{param}.{'window' if is_document else 'unlike'}") from error
    readable = query.characters is None or len(stored.text) <= query.characters
    if weights.bm25 and not readable:
        what = f"document {ids_of(query)[0][:80]!r} has" if is_document else "the documents in like have"
        raise InvalidRequestError(
            f"{what} {len(stored.text)} characters for BM25 to read; the limit is {query.characters} "
            "(setting max_characters): set weights.bm25 to 0",
            f"{param}.id" if is_document else f"{param}.like",
        )
    return stored, stored.text if readable else None
