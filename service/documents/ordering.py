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
from tercet.service.collections.readable import ReadableSnapshot
from tercet.service.documents.answers import PAGE_DOCUMENTS, document_record
from tercet.service.documents.writer import is_id
from tercet.service.exceptions import InvalidRequestError
from tercet.service.load.pools import Pool

_PLACE_TYPES: Mapping[FieldType, tuple[type, ...]] = {
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
        raise _no_place(error) from error
    return id, collection


def place_from(after: str | None, kind: FieldType, *, several: bool = False) -> Place | None:
    """Where a page begins in the order of a field of this type. Raises InvalidRequestError."""
    if after is None:
        return None
    try:
        return decode_place(after, kind, several=several)
    except (ValueError, InvalidDocumentError) as error:
        raise _no_place(error) from error


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
    following = encode_place(placed[limit - 1].at) if len(placed) > limit else None
    yield (b"" if separator == b"," else separator) + b'],"next":' + orjson.dumps(following) + b"}"


def encode_place(place: Place) -> str:
    """A place as clients get it, to be read by `decode_place`."""
    value = place.value.decode() if isinstance(place.value, bytes) else place.value
    collection = [] if place.collection is None else [place.collection]
    return orjson.dumps([value, place.id.decode(), *collection]).decode()


def decode_place(text: str, kind: FieldType, *, several: bool = False) -> Place:
    """A place in the order of a field of this type. several: of collections, each with a name of its own.

    Raises ValueError for another text.
    """
    found, collection = orjson.loads(text), None
    if several:
        *_, collection = _of_several(found, 3)
    elif not (isinstance(found, list) and len(found) == 2 and isinstance(found[1], str)):
        raise ValueError("it is not a value and an id")
    value: Any = found[0]
    id = encode_id(found[1])
    if value is None:
        return Place(None, id, collection)
    is_of_type: bool = isinstance(value, _PLACE_TYPES[kind])
    if not is_of_type or (kind == "boolean" and value not in (0, 1)):
        raise ValueError(f"{value!r:.80} is no value of a field of type {kind}")
    if kind in ("integer", "datetime") and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value!r:.80} does not fit in 64 bits")
    return Place(value.encode() if isinstance(value, str) else value, id, collection)


def _of_several(found: Any, parts: int) -> tuple[str, str]:
    """The id and the collection at the end of a place of so many parts. Raises ValueError for another."""
    if not (
        isinstance(found, list) and len(found) == parts and all(isinstance(each, str) for each in found[-2:])
    ):
        raise ValueError("it does not end with an id and its collection")
    id, collection = found[-2:]
    encode_id(id)
    return id, collection


def _no_place(error: Exception) -> InvalidRequestError:
    return InvalidRequestError(
        f"after is no place in the order ({error}); give next of the page before, or leave it out", "after"
    )


def _read(snapshot: ReadableSnapshot, placed: Sequence[PlacedDocument]) -> list[Document]:
    return [snapshot.read(each) for each in placed]
