"""Documents of a collection: put, patch, update, delete."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

import numpy as np
from fastapi import Depends, Header, Request, Response

from tercet.index.errors import CollectionExistsError, CollectionNotFoundError
from tercet.service.answers.binary import MEDIA_TYPE
from tercet.service.documents.binary import BinaryBody, ReadyArrays
from tercet.service.documents.keys import given_key, write_key
from tercet.service.documents.writer import DocumentBatch, PutOutcome
from tercet.service.requests.binary_route import BinaryRoute
from tercet.service.requests.keys import access_of
from tercet.service.routes.collections import Name, create_collection
from tercet.service.routes.common import WRITE, Services, TimeLimit, errors, json_response, router
from tercet.service.routes.document_bodies import (
    KeyHeaders,
    about_the_filter,
    check_texts,
    contents_of,
    documents_of,
    partition_fields,
    ready_texts,
    which_of,
)
from tercet.service.routes.documents import DOCUMENT, DOCUMENTS, Id, OnlyPartition
from tercet.service.schemas.collections import CollectionRequest
from tercet.service.schemas.documents import (
    DeleteDocumentsRequest,
    DeleteDocumentsResponse,
    PatchDocumentRequest,
    PatchDocumentResponse,
    PutDocumentsRequest,
    PutDocumentsResponse,
    UpdateDocumentsRequest,
    UpdateDocumentsResponse,
)

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


async def _key_headers(key: KeyHeader = None, digest: DigestHeader = None) -> KeyHeaders:
    return KeyHeaders(key, digest)


Keys = Annotated[KeyHeaders, Depends(_key_headers)]

routes = router("documents")


async def put_binary_documents(
    name: Name, request: Request, services: Services, keys: Keys, deadline: TimeLimit
) -> Response:
    """Adds documents from a body of safetensors, or replaces those with the same ids."""
    body = await services.pools.bodies.run(BinaryBody.read, await request.body())
    contents = await services.pools.bodies.run(contents_of, body, services.limits)
    check_texts(contents, services.limits)
    ready = ReadyArrays(body.arrays, [body.fingerprint], np.arange(len(contents)))
    given = given_key(keys.key, body.metadata.get("idempotency_key"))
    key = None
    if given is not None:
        content = b"" if keys.digest is not None else await services.pools.bodies.run(body.content)
        key = await services.pools.bodies.run(
            write_key, given, f"PUT {DOCUMENTS}", (name,), content, keys.digest
        )
    fields = partition_fields(contents, access_of(request))
    batch = DocumentBatch(documents_of(contents), ready, body.if_position, key, fields)
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
    request: Request,
    services: Services,
    keys: Keys,
    deadline: TimeLimit,
) -> Response:
    """Add documents, or replace those with the same ids: all of them or none.

    The answer comes once they are on the disk, and the next search finds them. They are encoded as builds
    encode them, unless they bring `representations` along: in JSON, or all of them in one safetensors body
    with the arrays of `/embed` and `documents`, uint8, a JSON object a line, and with `fingerprint`, and at
    will `idempotency_key` and `if_position`, in its metadata.
    """
    limits = services.limits
    check_texts(body.documents, limits)
    key = await keys.of(body, services, f"PUT {DOCUMENTS}", (name,))
    ready = None
    if any(document.representations is not None for document in body.documents):
        ready = await services.pools.bodies.run(ready_texts, body.documents)
    fields = partition_fields(body.documents, access_of(request))
    batch = DocumentBatch(documents_of(body.documents), ready, body.if_position, key, fields)
    try:
        return _put_answer(await services.writer.put(name, batch, deadline))
    except CollectionNotFoundError:
        if not body.create:
            raise
    access_of(request).require("admin", "create collections")
    with suppress(CollectionExistsError):  # made by somebody else meanwhile
        partitioned = all(document.partition is not None for document in body.documents)
        wanted = CollectionRequest.model_validate({"partitioned": partitioned})
        await create_collection(name, services, wanted)
    return _put_answer(await services.writer.put(name, batch, deadline))


@routes.post(
    f"{DOCUMENTS}/update",
    response_model=UpdateDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def update_documents(
    name: Name, body: UpdateDocumentsRequest, services: Services, keys: Keys, deadline: TimeLimit
) -> Response:
    """Change the metadata of documents, by ids or filter, of one partition or of all, or all of one.

    Nothing is encoded again. Ids that are not there are no error, and are not counted. More than 1,000
    documents are changed group by group: after a crash before the answer some are, and a repeat changes the
    others.
    """
    which, partition = which_of(body)
    key = await keys.of(body, services, f"POST {DOCUMENTS}/update", (name,))
    with about_the_filter():
        written = await services.writer.update(
            name, which, body.metadata, key, deadline, partition, merge=bool(body.merge)
        )
    return json_response({"updated": written.documents, "position": written.position})


@routes.post(
    f"{DOCUMENTS}/delete",
    response_model=DeleteDocumentsResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
)
async def delete_documents(
    name: Name, body: DeleteDocumentsRequest, services: Services, keys: Keys, deadline: TimeLimit
) -> Response:
    """Delete documents by ids or by filter, of one partition or of all, or all of a partition.

    Ids that are not there are no error, and are not counted.
    """
    which, partition = which_of(body)
    key = await keys.of(body, services, f"POST {DOCUMENTS}/delete", (name,))
    with about_the_filter():
        written = await services.writer.delete(name, which, key, deadline, partition)
    return json_response({"deleted": written.documents, "position": written.position})


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
    keys: Keys,
    deadline: TimeLimit,
) -> Response:
    """Replace a document's metadata, or merge something into it; nothing is encoded again."""
    key = await keys.of(body, services, f"PATCH {DOCUMENT}", (name, document_id))
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
    partition: OnlyPartition = None,
) -> Response:
    """Delete a document. One that is not there is no error: 0 are deleted then."""
    names = (name, document_id) if partition is None else (name, document_id, partition)
    key = write_key(header_key, f"DELETE {DOCUMENT}", names)
    with about_the_filter():
        written = await services.writer.delete(name, [document_id], key, deadline, partition)
    return json_response({"deleted": written.documents, "position": written.position})


def _put_answer(outcome: PutOutcome) -> Response:
    answer: dict[str, Any] = {
        "upserted": outcome.written.documents,
        "position": outcome.written.position,
        "usage": {"tokens": outcome.written.tokens},
    }
    if outcome.truncated:
        answer["truncated"] = outcome.truncated
    return json_response(answer)
