"""Documents of a collection: put, get, list, patch, delete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import orjson
from fastapi import Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from index.candidates import Document
from index.documents.filters import Filter, parse_filter
from index.documents.json_values import loads
from index.documents.metadata import require_metadata
from index.errors import DocumentNotFoundError, InvalidQueryError
from index.live.records import WriteKey
from models.representations import Float32
from service.answers.binary import MEDIA_TYPE
from service.answers.pieces import response_of
from service.documents.answers import document_pieces, document_record, documents_pieces, page_pieces
from service.documents.binary import BinaryBody, BroughtArrays
from service.documents.brought import BroughtText, BroughtTexts
from service.documents.keys import one_key, write_key
from service.documents.ordering import name_from, order_from, ordered_pieces, place_from
from service.documents.writer import DocumentBatch, PutOutcome, about_document
from service.exceptions import InvalidRequestError, RequestTooLargeError
from service.http.anything import ANYTHING
from service.http.binary_route import BinaryRoute
from service.http.why_not_json import why_not_json
from service.load.reading import Reading
from service.ready_representations import unpacked
from service.routes.collections import Name
from service.routes.common import (
    WRITE,
    MinPosition,
    Services,
    TimeLimit,
    check_characters,
    errors,
    json_response,
    reached,
    router,
)
from service.runtime import Runtime
from service.schemas.base import too_many
from service.schemas.documents import (
    CountDocumentsRequest,
    CountDocumentsResponse,
    DeleteDocumentsRequest,
    DeleteDocumentsResponse,
    DocumentContent,
    DocumentPage,
    DocumentRequest,
    DocumentResponse,
    Encoding,
    GetDocumentsRequest,
    GetDocumentsResponse,
    PatchDocumentRequest,
    PatchDocumentResponse,
    PutDocumentsRequest,
    PutDocumentsResponse,
    TextRepresentations,
    UpdateDocumentsRequest,
    UpdateDocumentsResponse,
    WindowRepresentations,
)
from service.schemas.search import PackedVectors
from service.settings import RequestLimits

DEFAULT_PAGE = 100
DOCUMENTS = "/collections/{name}/documents"
DOCUMENT = f"{DOCUMENTS}/{{document_id:{ANYTHING}}}"

Id = Annotated[str, Path(description="A document's id, percent-encoded; it may hold slashes.")]
KeyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="A name for this write, as the field `idempotency_key` of a body.",
    ),
]
DigestHeader = Annotated[
    str | None, Header(alias="Idempotency-Digest", pattern=r"^[0-9a-f]{64}$", include_in_schema=False)
]
"""What tells a repeat under a key from another write, instead of the body. A router sends that of its own
request: a shard gets a part of it, whose representations need not be the same to the bit when it is repeated.
"""
Numbers = TypeVar("Numbers")
_CONTENTS = TypeAdapter(Annotated[list[DocumentContent], Field(min_length=1, fail_fast=True)])

routes = router("documents")


async def put_binary_documents(
    name: Name,
    request: Request,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
    digest: DigestHeader = None,
) -> Response:
    """The same, of a body of safetensors."""
    body = await services.pools.bodies.run(BinaryBody.read, await request.body())
    contents = await services.pools.bodies.run(_contents, body, services.limits)
    _check_texts(contents, services.limits)
    brought = BroughtArrays(body.arrays, [body.fingerprint], np.arange(len(contents)))
    given = one_key(header_key, body.metadata.get("idempotency_key"))
    key = None
    if given is not None:
        content = b"" if digest is not None else await services.pools.bodies.run(body.content)
        key = await services.pools.bodies.run(write_key, given, f"PUT {DOCUMENTS}", (name,), content, digest)
    batch = DocumentBatch([_document(each) for each in contents], brought, body.if_position, key)
    return _put_answer(await services.writer.put(name, batch, deadline))


routes.add_api_route(  # before the route for JSON, which matches any type
    DOCUMENTS,
    put_binary_documents,
    methods=["PUT"],
    dependencies=WRITE,
    include_in_schema=False,
    route_class_override=BinaryRoute,
)


@routes.put(
    DOCUMENTS,
    response_model=PutDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
    openapi_extra={
        "requestBody": {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def put_documents(
    name: Name,
    body: PutDocumentsRequest,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
    digest: DigestHeader = None,
) -> Response:
    """Add documents, or replace those with the same ids: all of them or none.

    The answer comes once they are on the disk, and the next search finds them. They are encoded as builds
    encode them, unless they bring `representations` along: in JSON, or all of them in one safetensors body
    with the arrays of `/embed` and `documents`, uint8, a JSON object a line, and with `fingerprint`, and at
    will `idempotency_key` and `if_position`, in its metadata.
    """
    limits = services.limits
    _check_texts(body.documents, limits)
    key = one_key(header_key, body.idempotency_key)
    write = await _key(services, key, f"PUT {DOCUMENTS}", (name,), body, digest)
    brought = None
    if any(each.representations is not None for each in body.documents):
        brought = await services.pools.bodies.run(_brought, body.documents)
    batch = DocumentBatch([_document(each) for each in body.documents], brought, body.if_position, write)
    return _put_answer(await services.writer.put(name, batch, deadline))


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
    with _about_the_filter():
        tree = None if filter is None else parse_filter(_json(filter))
    await reached(services, name, min_position, deadline)
    snapshot = await services.readable.open(name, Reading(deadline, newest=min_position is not None))
    if order_by is None:
        begin = name_from(after, several=snapshot.is_of_several)
        pieces = page_pieces(snapshot, begin, count, tree, services.pools.search)
    else:
        wanted = order_from(order_by, order, snapshot.settings.fields)
        place = place_from(after, snapshot.settings.fields[order_by], several=snapshot.is_of_several)
        pieces = ordered_pieces(snapshot, wanted, place, count, tree, services.pools.search)
    with _about_the_filter():
        return await response_of(pieces)


@routes.post(f"{DOCUMENTS}/count", response_model=CountDocumentsResponse, responses=errors(404, 409, 422))
async def count_documents(
    name: Name, services: Services, deadline: TimeLimit, body: CountDocumentsRequest | None = None
) -> Response:
    """Count documents: all of them, or those that a filter allows."""
    position = None if body is None else body.min_position
    await reached(services, name, position, deadline)
    with _about_the_filter():
        tree = None if body is None or body.filter is None else parse_filter(body.filter)
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
    snapshot = await services.readable.open(name, Reading(deadline, newest=body.min_position is not None))
    return await response_of(
        documents_pieces(snapshot, list(dict.fromkeys(body.ids)), services.pools.operations)
    )


@routes.post(
    f"{DOCUMENTS}/update",
    response_model=UpdateDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def update_documents(
    name: Name,
    body: UpdateDocumentsRequest,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
    digest: DigestHeader = None,
) -> Response:
    """Change the metadata of documents, by id or by filter; nothing is encoded again.

    Ids that are not there are no error, and are not counted. More than 1,000 documents are changed group by
    group: after a crash before the answer some are, and a repeat changes the others.
    """
    which = _which(body)
    given = one_key(header_key, body.idempotency_key)
    key = await _key(services, given, f"POST {DOCUMENTS}/update", (name,), body, digest)
    with _about_the_filter():
        written = await services.writer.update(
            name, which, body.metadata, key, deadline, merge=bool(body.merge)
        )
    return json_response({"updated": written.documents, "position": written.position})


@routes.post(
    f"{DOCUMENTS}/delete",
    response_model=DeleteDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def delete_documents(
    name: Name,
    body: DeleteDocumentsRequest,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
    digest: DigestHeader = None,
) -> Response:
    """Delete documents by id or by filter. Ids that are not there are no error, and are not counted."""
    which = _which(body)
    given = one_key(header_key, body.idempotency_key)
    key = await _key(services, given, f"POST {DOCUMENTS}/delete", (name,), body, digest)
    if isinstance(which, Filter):
        with _about_the_filter():
            written = await services.writer.delete_matching(name, which, key, deadline)
    else:
        written = await services.writer.delete(name, which, key, deadline)
    return json_response({"deleted": written.documents, "position": written.position})


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
    min_position: MinPosition = None,
) -> Response:
    """A stored document by its id."""
    await reached(services, name, min_position, deadline)
    snapshot = await services.readable.open(name, Reading(deadline, newest=min_position is not None))
    missing = DocumentNotFoundError(f"collection {name!r} has no document {document_id[:600]!r}")
    if not representations:
        document = await services.pools.operations.run(snapshot.get, document_id)
        if document is None:
            raise missing
        return json_response(document_record(document))
    found = await services.pools.operations.run(snapshot.stored, document_id)
    if found is None:
        raise missing
    document, stored = found
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


@routes.patch(
    DOCUMENT,
    response_model=PatchDocumentResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def patch_document(
    name: Name,
    document_id: Id,
    body: PatchDocumentRequest,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
    digest: DigestHeader = None,
) -> Response:
    """Replace a document's metadata, or merge something into it; nothing is encoded again."""
    given = one_key(header_key, body.idempotency_key)
    key = await _key(services, given, f"PATCH {DOCUMENT}", (name, document_id), body, digest)
    written = await services.writer.patch(
        name, document_id, body.metadata, body.if_position, key, deadline, merge=bool(body.merge)
    )
    return json_response({"position": written.position})


@routes.delete(
    DOCUMENT,
    response_model=DeleteDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def delete_document(
    name: Name,
    document_id: Id,
    services: Services,
    deadline: TimeLimit,
    header_key: KeyHeader = None,
) -> Response:
    """Delete a document. One that is not there is no error: 0 are deleted then."""
    key = write_key(header_key, f"DELETE {DOCUMENT}", (name, document_id))
    written = await services.writer.delete(name, [document_id], key, deadline)
    return json_response({"deleted": written.documents, "position": written.position})


async def _key(
    services: Runtime,
    given: str | None,
    route: str,
    names: tuple[str, ...],
    body: BaseModel,
    digest: str | None,
) -> WriteKey | None:
    """The key of a write with a body that may be large."""
    if given is None:
        return None
    return await services.pools.bodies.run(_digested, given, route, names, body, digest)


def _digested(
    given: str, route: str, names: tuple[str, ...], body: BaseModel, digest: str | None
) -> WriteKey | None:
    """Raises InvalidDocumentError for metadata that no digest can be taken of, as no document may have it."""
    if isinstance(body, PutDocumentsRequest):
        for place, document in enumerate(body.documents):
            with about_document(place):
                require_metadata(f"document {document.id!r:.80}", document.metadata or {})
    elif isinstance(body, PatchDocumentRequest | UpdateDocumentsRequest):
        require_metadata(f"document {names[-1]!r:.80}", body.metadata)
    # Its own key is no part of what is compared, nor what servers of before did not know and says nothing.
    left_out = {"idempotency_key", *(() if getattr(body, "merge", False) else ("merge",))}
    content = {name: value for name, value in body if name not in left_out}
    return write_key(given, route, names, content, digest)


def _document(content: DocumentContent) -> Document:
    return Document(content.id, content.text, content.title, content.metadata or {})


def _put_answer(outcome: PutOutcome) -> Response:
    answer: dict[str, Any] = {
        "upserted": outcome.written.documents,
        "position": outcome.written.position,
        "usage": {"tokens": outcome.written.tokens},
    }
    if outcome.truncated:
        answer["truncated"] = outcome.truncated
    return json_response(answer)


def _contents(body: BinaryBody, limits: RequestLimits) -> list[DocumentContent]:
    """The documents of a binary body. Raises RequestTooLargeError, or what a body of JSON would."""
    complaint = too_many(body.line_count, "write_documents", "items", limits)
    if complaint is not None:
        raise RequestTooLargeError(f"documents {complaint.message()}", "documents")
    values = body.values()
    try:
        return _CONTENTS.validate_python(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        details = [{**each, "loc": ("body", "documents", *each["loc"])} for each in errors]
        raise RequestValidationError(details, body={"documents": values}) from error


def _check_texts(documents: Sequence[DocumentContent], limits: RequestLimits) -> None:
    for place, document in enumerate(documents):
        check_characters([document.text], limits.characters, f"documents.{place}.text")
        check_characters([document.title or ""], limits.characters, f"documents.{place}.title")


def _json(text: str) -> Any:
    try:
        return loads(text.encode())
    except orjson.JSONDecodeError as error:
        why = why_not_json(text.encode(), error)
        raise InvalidRequestError(f"filter is not valid JSON: {why}", "filter", "invalid_filter") from error


@contextmanager
def _about_the_filter() -> Iterator[None]:
    """Only a filter can be invalid in what is asked for here."""
    try:
        yield
    except InvalidQueryError as error:
        raise InvalidRequestError(str(error), "filter", "invalid_filter") from error


def _which(body: DeleteDocumentsRequest | UpdateDocumentsRequest) -> Sequence[str] | Filter:
    """The ids or the filter of a body: one of them. A filter is read before the body's key, whose digest can
    hold only what a filter may.
    """
    if (body.ids is None) == (body.filter is None):
        raise InvalidRequestError("give ids or filter: one of them", "ids")
    if body.ids is not None:
        return body.ids
    with _about_the_filter():
        return parse_filter(body.filter)


def _brought(documents: Sequence[DocumentRequest]) -> BroughtTexts:
    """The representations that some of the documents bring along."""
    places: list[int] = []
    fingerprints: list[str] = []
    texts: list[list[BroughtText]] = []
    for place, document in enumerate(documents):
        given, param = document.representations, f"documents.{place}.representations"
        if given is None:
            continue
        places.append(place)
        fingerprints.append(given.fingerprint)
        if given.windows is None:
            texts.append([_text(given, param)])
            continue
        for side in ("dense", "sparse", "colbert"):
            if getattr(given, side) is not None:
                raise InvalidRequestError(
                    f"{param}.{side}: the windows have their own; leave it out", f"{param}.{side}"
                )
        texts.append([_text(each, f"{param}.windows.{number}") for number, each in enumerate(given.windows)])
    return BroughtTexts(np.array(places, np.int64), fingerprints, texts)


def _text(given: TextRepresentations, param: str) -> BroughtText:
    return BroughtText(
        param,
        _numbers(given.dense, 1, f"{param}.dense"),
        None if given.sparse is None else (given.sparse.token_ids, given.sparse.weights),
        _numbers(given.colbert, 2, f"{param}.colbert"),
        (given.start, given.end) if isinstance(given, WindowRepresentations) else None,
    )


def _numbers(given: Numbers | PackedVectors, axes: int, param: str) -> Numbers | Float32:
    """Lists as they are, packed vectors as an array."""
    return unpacked(given.data, given.shape, axes, param) if isinstance(given, PackedVectors) else given
