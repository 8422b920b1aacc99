"""Documents by the asynchronous client. `documents.py` is made from it by `clients/python/make_sync.py`."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from typing import Any, cast

import httpx

from tercet_client.async_connection import AsyncConnection
from tercet_client.embeddings import MEDIA_TYPE, Embeddings, documents_body
from tercet_client.errors import ConnectionFailedError, error_of, progress_of
from tercet_client.parts import Parameter, path_of, query_of, which
from tercet_client.positions import Position
from tercet_client.types import (
    DeleteDocumentsResponse,
    DocumentRequest,
    DocumentResponse,
    Filter,
    GetDocumentsResponse,
    ImportPreview,
    ImportProgress,
    PatchDocumentResponse,
    PutDocumentsResponse,
    UpdateDocumentsResponse,
)

PAGE = 100


class AsyncDocuments(AsyncConnection):
    """The documents of a server's collections: written, read, imported."""

    async def put_documents(
        self,
        collection: str,
        documents: Sequence[DocumentRequest],
        *,
        create: bool = False,
        embeddings: Embeddings | None = None,
        idempotency_key: str | None = None,
        if_position: Position | None = None,
    ) -> PutDocumentsResponse:
        """Adds or replaces documents, all of them or none; on the disk once this returns.

        create: makes the collection where it is missing; not with embeddings, which are of its encoder.
        embeddings: of the documents by the collection's encoder, so that the server need not encode them.
        if_position: only if none of them was written after it, else ConflictError.
        Raises ValueError where create and embeddings are both given.
        """
        if create and embeddings is not None:
            raise ValueError("create does not go with embeddings; make the collection first, by its encoder")
        path, key = path_of("collections", collection, "documents"), idempotency_key or uuid.uuid4().hex
        if embeddings is None:
            body = {
                "documents": list(documents),
                "create": create,
                "idempotency_key": key,
                "if_position": if_position,
            }
            return cast(PutDocumentsResponse, await self._json("PUT", path, body))
        metadata = {"idempotency_key": key}
        if if_position is not None:
            metadata["if_position"] = str(if_position)
        content = documents_body(documents, embeddings, metadata)
        answer = await self._send("PUT", path, content=content, headers={"Content-Type": MEDIA_TYPE})
        return cast(PutDocumentsResponse, answer.json())

    async def document(
        self,
        collection: str,
        id: str,
        *,
        representations: bool = False,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> DocumentResponse:
        """A stored document. Raises NotFoundError. representations: with all that is stored of it.

        partition: in which it is to be; of several shards only one is asked then. min_position: of a write's
        answer, after which it is read; as in the other methods that have it.
        """
        params = {"representations": "true"} if representations else {}
        if min_position is not None:
            params["min_position"] = str(min_position)
        if partition is not None:
            params["partition"] = partition
        path = path_of("collections", collection, "documents", id)
        return cast(DocumentResponse, await self._json("GET", path, params=params))

    def documents(
        self,
        collection: str,
        *,
        filter: Filter | None = None,
        partition: str | None = None,
        order_by: str | None = None,
        descending: bool = False,
        page: int = PAGE,
        min_position: Position | None = None,
    ) -> AsyncIterator[DocumentResponse]:
        """All documents, or those of a partition, in order of id or of a declared field, page by page."""
        params = {} if min_position is None else {"min_position": str(min_position)}
        if order_by is not None:
            params |= {"order_by": order_by, "order": "desc" if descending else "asc"}
        if filter is not None:
            params["filter"] = json.dumps(filter)
        if partition is not None:
            params["partition"] = partition
        return self._pages(path_of("collections", collection, "documents"), "documents", page, params)

    async def patch_document(
        self,
        collection: str,
        id: str,
        metadata: Mapping[str, Any],
        *,
        merge: bool = False,
        idempotency_key: str | None = None,
        if_position: Position | None = None,
    ) -> PatchDocumentResponse:
        """Replaces a document's metadata, or merges this into it (RFC 7396); nothing is encoded again."""
        body = {
            "metadata": dict(metadata),
            "merge": merge,
            "idempotency_key": idempotency_key or uuid.uuid4().hex,
            "if_position": if_position,
        }
        path = path_of("collections", collection, "documents", id)
        return cast(PatchDocumentResponse, await self._json("PATCH", path, body))

    async def count_documents(
        self,
        collection: str,
        filter: Filter | None = None,
        *,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> int:
        """How many documents there are, or how many of them a filter allows, of one partition or of all."""
        body = {"filter": filter, "partition": partition, "min_position": min_position}
        path = path_of("collections", collection, "documents", "count")
        return cast(int, (await self._json("POST", path, body))["count"])

    async def get_documents(
        self,
        collection: str,
        ids: Sequence[str],
        *,
        partition: str | None = None,
        min_position: Position | None = None,
    ) -> GetDocumentsResponse:
        """Several documents by their ids, and the ids that are not there, or not in a partition."""
        path = path_of("collections", collection, "documents", "get")
        body = {"ids": list(ids), "partition": partition, "min_position": min_position}
        return cast(GetDocumentsResponse, await self._json("POST", path, body))

    async def update_documents(
        self,
        collection: str,
        metadata: Mapping[str, Any],
        *,
        ids: Sequence[str] | None = None,
        filter: Filter | None = None,
        partition: str | None = None,
        merge: bool = False,
        idempotency_key: str | None = None,
    ) -> UpdateDocumentsResponse:
        """Changes the metadata of documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error.
        """
        body = {
            "metadata": dict(metadata),
            "merge": merge,
            **which(ids, filter, partition),
            "idempotency_key": idempotency_key or uuid.uuid4().hex,
        }
        path = path_of("collections", collection, "documents", "update")
        return cast(UpdateDocumentsResponse, await self._json("POST", path, body))

    async def delete_documents(
        self,
        collection: str,
        *,
        ids: Sequence[str] | None = None,
        filter: Filter | None = None,
        partition: str | None = None,
        idempotency_key: str | None = None,
    ) -> DeleteDocumentsResponse:
        """Deletes documents, by ids or a filter, of one partition or of all, or all of one.

        Ids that are not there are no error.
        """
        body = {**which(ids, filter, partition), "idempotency_key": idempotency_key or uuid.uuid4().hex}
        path = path_of("collections", collection, "documents", "delete")
        return cast(DeleteDocumentsResponse, await self._json("POST", path, body))

    async def import_file(
        self,
        collection: str,
        filename: str,
        content: bytes | AsyncIterable[bytes],
        **options: Parameter,
    ) -> AsyncIterator[ImportProgress]:
        """Writes the documents of a file; yields how far it is, after each group that is on the disk.

        filename: its ending says what the file is. options: the server's query parameters, such as
        text_field, split and on_error. Raises ApiError where it ends early; what was written stays.
        """
        path = path_of("collections", collection, "import")
        query = query_of(options, filename=filename)
        try:
            async with self._http.stream("POST", path, params=query, content=content) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise error_of(answer)
                async for line in answer.aiter_lines():
                    yield cast(ImportProgress, progress_of(line))
        except httpx.HTTPError as error:
            raise ConnectionFailedError(
                f"{self._http.base_url} does not answer: {error or type(error).__name__}"
            ) from error

    async def preview_import(
        self, collection: str, filename: str, content: bytes, **options: Parameter
    ) -> ImportPreview:
        """What an import would read: columns, and the first three documents. Nothing is written."""
        path = path_of("collections", collection, "import")
        query = query_of(options, filename=filename, dry_run=True)
        return cast(ImportPreview, (await self._send("POST", path, content=content, params=query)).json())
