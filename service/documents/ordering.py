"""Lists of documents in the order of a declared field, and where a page begins, in this or by ids."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import orjson

from tercet.index.candidates import Document
from tercet.index.documents.filters import Filter
from tercet.index.documents.metadata import FieldType
from tercet.index.documents.store import encode_id
from tercet.index.errors import InvalidDocumentError, InvalidQueryError
from tercet.index.reading.ordered import Order, Place, PlacedDocument, check_order
from tercet.index.wording import shown
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.documents.answers import PAGE_DOCUMENTS, document_record
from tercet.service.documents.writer import is_id
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.pools import Pool

_VALUE_TYPES: Mapping[FieldType, tuple[type, ...]] = {
    "keyword": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (int,),
    "datetime": (int,),
}


def order_from(field: str, direction: str | None, fields: Mapping[str, FieldType]) -> Order:
    """The order of a request. Raises InvalidRequestError for a field that is not declared."""
    order = Order(field, direction == "desc")
    try:
        check_order(order, fields)
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "order_by", "invalid_field") from error
    return order


def name_from(after: str | None, *, several: bool) -> tuple[str, str | None] | None:
    """Behind which id a page begins, and where several collections are listed as one, of which collection.

    Raises InvalidRequestError.
    """
    if after is None:
        return None
    if not several:
        if not is_id(after):
            raise InvalidRequestError(
                "after is no id: give 1 to 512 bytes of UTF-8, or leave it out", "after"
            )
        return after, None
    try:
        id, collection = _of_several(orjson.loads(after), 2)
    except (ValueError, InvalidDocumentError) as error:
        raise _no_cursor(error) from error
    return id, collection


def cursor_from(after: str | None, kind: FieldType, *, several: bool = False) -> Place | None:
    """Where a page begins in the order of a field of this type. Raises InvalidRequestError."""
    if after is None:
        return None
    try:
        return decode_cursor(after, kind, several=several)
    except (ValueError, InvalidDocumentError) as error:
        raise _no_cursor(error) from error


async def ordered_pieces(
    snapshot: ReadableSnapshot,
    order: Order,
    after: Place | None,
    limit: int,
    filter: Filter | None,
    pool: Pool,
) -> AsyncGenerator[bytes]:
    """Up to `limit` documents of a snapshot in the order of a field, and where the next page begins in it."""
    placed = await pool.run(snapshot.ordered_page, order, after, limit + 1, filter)
    separator = b'{"documents":['
    for start in range(0, min(limit, len(placed)), PAGE_DOCUMENTS):
        some = placed[start : min(start + PAGE_DOCUMENTS, limit)]
        for document in await pool.run(_read, snapshot, some):
            yield separator + orjson.dumps(document_record(document))
            separator = b","
    following = encode_cursor(placed[limit - 1].at) if len(placed) > limit else None
    yield (b"" if separator == b"," else separator) + b'],"next":' + orjson.dumps(following) + b"}"


def encode_cursor(cursor: Place) -> str:
    """A place as clients get it, to be read by `decode_place`."""
    value = cursor.value.decode() if isinstance(cursor.value, bytes) else cursor.value
    collection = [] if cursor.collection is None else [cursor.collection]
    return orjson.dumps([value, cursor.id.decode(), *collection]).decode()


def decode_cursor(text: str, kind: FieldType, *, several: bool = False) -> Place:
    """A cursor in the order of a field of this type. several: of collections, each with its own name.

    Raises ValueError for another text.
    """
    parts, collection = orjson.loads(text), None
    if several:
        *_, collection = _of_several(parts, 3)
    elif not (isinstance(parts, list) and len(parts) == 2 and isinstance(parts[1], str)):
        raise ValueError("it is not a value and an id")
    value: Any = parts[0]
    id = encode_id(parts[1])
    if value is None:
        return Place(None, id, collection)
    is_of_type: bool = isinstance(value, _VALUE_TYPES[kind])
    if not is_of_type or (kind == "boolean" and value not in (0, 1)):
        raise ValueError(f"{shown(value)} is no value of a field of type {kind}")
    if kind in ("integer", "datetime") and not -(2**63) <= value < 2**63:
        raise ValueError(f"{shown(value)} does not fit in 64 bits")
    return Place(value.encode() if isinstance(value, str) else value, id, collection)


def _of_several(ends: Any, parts: int) -> tuple[str, str]:
    """The id and the collection at the end of a cursor of so many parts. Raises ValueError for another."""
    if not (
        isinstance(ends, list) and len(ends) == parts and all(isinstance(value, str) for value in ends[-2:])
    ):
        raise ValueError("it does not end with an id and its collection")
    id, collection = ends[-2:]
    encode_id(id)
    return id, collection


def _no_cursor(error: Exception) -> InvalidRequestError:
    return InvalidRequestError(
        f"after is no place in the order ({error}); give next of the page before, or leave it out", "after"
    )


def _read(snapshot: ReadableSnapshot, placed: Sequence[PlacedDocument]) -> list[Document]:
    return [snapshot.read(document) for document in placed]
