"""Documents of a collection: get, list, count."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import orjson
from fastapi import Path, Query, Response

from tercet.index.documents.json_values import loads
from tercet.index.documents.partitions import is_within, within_partition
from tercet.index.errors import DocumentNotFoundError
from tercet.service.answers.pieces import response_of
from tercet.service.documents.answers import document_pieces, document_record, documents_pieces, page_pieces
from tercet.service.documents.ordering import cursor_from, name_from, order_from, ordered_pieces
from tercet.service.exceptions import InvalidRequestError
from tercet.service.http.why_not_json import why_not_json
from tercet.service.load.reading import Reading
from tercet.service.requests.rest_of_path import REST_OF_PATH
from tercet.service.routes.collections import Name
from tercet.service.routes.common import (
    MinPosition,
    Services,
    TimeLimit,
    errors,
    json_response,
    reached,
    router,
)
from tercet.service.routes.document_bodies import about_the_filter, filter_of
from tercet.service.schemas.base import Partition
from tercet.service.schemas.documents import (
    CountDocumentsRequest,
    CountDocumentsResponse,
    DocumentPage,
    DocumentResponse,
    Encoding,
    GetDocumentsRequest,
    GetDocumentsResponse,
)

DEFAULT_PAGE = 100
DOCUMENTS = "/collections/{name}/documents"
DOCUMENT = f"{DOCUMENTS}/{{document_id:{REST_OF_PATH}}}"

Id = Annotated[str, Path(description="A document's id, percent-encoded; it may hold slashes.")]

OnlyPartition = Annotated[Partition | None, Query(description="Only documents of this partition.")]

routes = router("documents")


@routes.get(DOCUMENTS, response_model=DocumentPage, responses=errors(404, 409, 422))
async def list_documents(
    name: Name,
    services: Services,
    deadline: TimeLimit,
    after: Annotated[
        str | None, Query(description="The last id of the page before: `next` of its answer.")
    ] = None,
    limit: Annotated[
        int | None,
        Query(ge=1, description="Documents; by default 100, limited by the setting `max_page_documents`."),
    ] = None,
    filter: Annotated[
        str | None, Query(description="Documents to list, a filter of `/search` as a JSON string.")
    ] = None,
    partition: OnlyPartition = None,
    order_by: Annotated[
        str | None, Query(description="A declared field to order by, instead of the id.")
    ] = None,
    order: Annotated[Literal["asc", "desc"] | None, Query(description="Only with `order_by`.")] = None,
    min_position: MinPosition = None,
) -> Response:
    """Documents in order of id, some at a time; all of them where each page begins `after` the one before.

    Ids are ordered by their UTF-8 bytes. While documents are written, those that stay are each listed once.
    With `order_by` documents of equal values are in order of id, and those without a value come last.
    """
    if order is not None and order_by is None:
        raise InvalidRequestError("order goes with order_by; give both, or none", "order")
    largest = services.limits.page_documents
    count = min(DEFAULT_PAGE, largest) if limit is None else limit
    if count > largest:
        raise InvalidRequestError(
            f"limit is {count}; the limit is {largest} (setting max_page_documents)", "limit"
        )
    tree = filter_of(None if filter is None else _json(filter), partition)
    await reached(services, name, min_position, deadline)
    snapshot = await services.readable.open(name, Reading(deadline, newest=min_position is not None))
    if order_by is None:
        begin = name_from(after, several=snapshot.is_of_several)
        pieces = page_pieces(snapshot, begin, count, tree, services.pools.search)
    else:
        wanted = order_from(order_by, order, snapshot.settings.fields)
        cursor = cursor_from(after, snapshot.settings.fields[order_by], several=snapshot.is_of_several)
        pieces = ordered_pieces(snapshot, wanted, cursor, count, tree, services.pools.search)
    with about_the_filter():
        return await response_of(pieces)


@routes.post(f"{DOCUMENTS}/count", response_model=CountDocumentsResponse, responses=errors(404, 409, 422))
async def count_documents(
    name: Name, services: Services, deadline: TimeLimit, body: CountDocumentsRequest | None = None
) -> Response:
    """Count documents: all of them, or those that a filter allows."""
    position = None if body is None else body.min_position
    await reached(services, name, position, deadline)
    tree = None if body is None else filter_of(body.filter, body.partition)
    with about_the_filter():
        snapshot = await services.readable.open(name, Reading(deadline, newest=position is not None))
        return json_response({"count": await services.pools.search.run(snapshot.count, tree)})


@routes.post(f"{DOCUMENTS}/get", response_model=GetDocumentsResponse, responses=errors(404, 409, 422))
async def get_documents(
    name: Name, body: GetDocumentsRequest, services: Services, deadline: TimeLimit
) -> Response:
    """Several stored documents by their ids, as they are at one moment, each once.

    Of an alias of several collections an id may give a document of each.
    """
    await reached(services, name, body.min_position, deadline)
    reading = Reading(
        deadline, newest=body.min_position is not None, filter=within_partition(None, body.partition)
    )
    snapshot = await services.readable.open(name, reading)
    return await response_of(
        documents_pieces(
            snapshot, list(dict.fromkeys(body.ids)), services.pools.operations, partition=body.partition
        )
    )


@routes.get(
    DOCUMENT,
    response_model=DocumentResponse,
    responses=errors(404, 409, 422),
)
async def get_document(
    name: Name,
    document_id: Id,
    services: Services,
    deadline: TimeLimit,
    representations: Annotated[bool, Query(description="Add what is stored of its representations.")] = False,
    encoding: Annotated[
        Encoding, Query(description="`base64`: dense and colbert as little-endian float32 with their shape.")
    ] = "float",
    partition: OnlyPartition = None,
    min_position: MinPosition = None,
) -> Response:
    """A stored document by its id."""
    await reached(services, name, min_position, deadline)
    reading = Reading(deadline, newest=min_position is not None, filter=within_partition(None, partition))
    snapshot = await services.readable.open(name, reading)
    missing = DocumentNotFoundError(f"collection {name!r} has no document {document_id[:600]!r}")
    if not representations:
        document = await services.pools.operations.run(snapshot.get, document_id)
        if document is None or not is_within(document, partition):
            raise missing
        return json_response(document_record(document))
    row = await services.pools.operations.run(snapshot.stored, document_id)
    if row is None or not is_within(row[0], partition):
        raise missing
    document, stored = row
    encoder = await services.encoders.of_collection(snapshot.settings)
    return await response_of(
        document_pieces(
            document,
            stored,
            snapshot.settings.fingerprint,
            encoder.tokenizer,
            packed=encoding == "base64",
        )
    )


def _json(text: str) -> Any:
    try:
        return loads(text.encode())
    except orjson.JSONDecodeError as error:
        why = why_not_json(text.encode(), error)
        raise InvalidRequestError(f"filter is not valid JSON: {why}", "filter", "invalid_filter") from error
