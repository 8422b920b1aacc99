"""Files into a collection: the body is a file of documents, read here and written group by group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

import orjson
from fastapi import Request, Response

from tercet.index.documents.metadata import FieldType
from tercet.index.errors import CollectionNotFoundError
from tercet.ingest.errors import SourceError
from tercet.ingest.sources.preview import Preview, preview
from tercet.ingest.sources.reader import DocumentReader
from tercet.models.tokenizer import Tokenizer
from tercet.service.documents.answers import document_record
from tercet.service.errors import INTERNAL, failure_of
from tercet.service.http.asgi import Receive, Scope, Send
from tercet.service.imports.parameters import ImportOptions, ImportRequest
from tercet.service.imports.received_file import ReceivedFile, too_large
from tercet.service.imports.writing import DocumentImport
from tercet.service.load.deadlines import Deadline
from tercet.service.requests.streamed_route import FILE, StreamedRoute
from tercet.service.routes.collections import Name
from tercet.service.routes.common import WRITE, Services, TimeLimit, errors, json_response, router
from tercet.service.runtime import Runtime
from tercet.service.schemas.errors import REFERENCE
from tercet.service.schemas.imports import ImportPreview, ImportProgress

JSON_LINES = "application/jsonl"

log = logging.getLogger("tercet")
routes = router("documents")
routes.route_class = StreamedRoute


class _Lines(Response):
    """JSON lines, each sent as soon as it is made. The first is there when the answer begins."""

    media_type = JSON_LINES

    def __init__(self, first: Mapping[str, Any], rest: AsyncGenerator[dict[str, Any]]) -> None:
        # An encoder would keep lines back until it has enough of them.
        super().__init__(headers={"Cache-Control": "no-store, no-transform"})
        del self.headers["content-length"]
        self._first = first
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What goes wrong is told in the last line, as errors are told."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._rest) as rest:
            await send(_body(self._first))
            try:
                async for line in rest:
                    await send(_body(line))
            except Exception as error:
                failure = failure_of(error)
                log.error("an import ended early: %s", error, exc_info=error if failure is INTERNAL else None)
                await send(_body(orjson.loads(failure.body)))
        await send({"type": "http.response.body", "body": b""})


@routes.post(
    "/collections/{name}/import",
    response_model=ImportProgress | ImportPreview,
    responses=errors(404, 409, 422, 507),
    dependencies=WRITE,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {FILE: {"schema": {"type": "string", "format": "binary"}}},
        },
        "responses": {
            "200": {
                "content": {
                    JSON_LINES: {
                        "schema": {"$ref": REFERENCE.format(model="ImportProgress")},
                        "example": {"documents": 200, "skipped": 1, "position": 12, "fraction": 0.5},
                    }
                }
            }
        },
    },
)
async def import_file(
    name: Name, request: Request, options: ImportOptions, services: Services, deadline: TimeLimit
) -> Response:
    """Write the documents of a file, which is the body, and tell after each group how far it is.

    The answer is JSON lines, with `done` in the last one. Each line tells of what is on the disk. Documents
    replace those with the same ids; with `split` their passages replace all former ones. An error before the
    first line is answered as all errors are; a later one is the `error` of the last line, and what was
    written by then stays. It ends where the client leaves. A dry run answers with one object
    (`ImportPreview`), also where the collection is not there yet.
    """
    max_bytes = services.settings.max_import_bytes
    if int(request.headers.get("content-length", 0)) > max_bytes:
        raise too_large(max_bytes)
    if options.dry_run:
        fields, _, tokenizer = await _measures(name, options, services, deadline, may_be_new=True)
        async with _received(request, options, services) as file:
            previewed = await _previewed(file, options, fields, tokenizer, services)
        return json_response(_preview_record(previewed, options))
    fields, partitioned, tokenizer = await _measures(name, options, services, deadline)
    lines = _imported(name, request, options, services, fields, tokenizer, partitioned=partitioned)
    return _Lines(await anext(lines), lines)


async def _measures(
    name: str, options: ImportRequest, services: Runtime, deadline: Deadline, *, may_be_new: bool = False
) -> tuple[Mapping[str, FieldType], bool, Tokenizer | None]:
    """The declared fields of a collection, whether it is partitioned, and what measures passages where there
    are some.
    """
    try:
        services.require_open()
        settings = await services.writes().open_to_write(name, deadline)
    except CollectionNotFoundError:
        if not may_be_new:
            raise
        return {}, False, None if options.reading.split is None else services.encoding.tokenizer
    if options.reading.split is None:
        return settings.fields, settings.partitioned, None
    encoding = await services.encoders.of_collection(settings)
    return settings.fields, settings.partitioned, encoding.tokenizer


@asynccontextmanager
async def _received(
    request: Request, options: ImportRequest, services: Runtime
) -> AsyncGenerator[ReceivedFile]:
    """The body in a file, which goes with the context."""
    pool = services.pools.imports
    file = await pool.run(ReceivedFile.open, services.settings.data, options.filename)
    try:
        await file.take(request.stream(), services.settings.max_import_bytes, pool)
        yield file
    finally:
        await asyncio.shield(asyncio.wrap_future(pool.submit(file.close)))


async def _previewed(
    file: ReceivedFile,
    options: ImportRequest,
    fields: Mapping[str, FieldType],
    tokenizer: Tokenizer | None,
    services: Runtime,
) -> Preview:
    """Raises SourceError for what cannot be read."""
    try:
        previewed = await services.pools.imports.run(preview, file.source, options.reading, fields, tokenizer)
    except SourceError as error:
        raise SourceError(file.said(error)) from error
    return file.for_client(previewed)


async def _imported(
    name: str,
    request: Request,
    options: ImportRequest,
    services: Runtime,
    fields: Mapping[str, FieldType],
    tokenizer: Tokenizer | None,
    *,
    partitioned: bool,
) -> AsyncGenerator[dict[str, Any]]:
    """The lines of the answer. Raises as `DocumentImport.progress`, and as `ReceivedFile.take`."""
    pool = services.pools.imports
    async with _received(request, options, services) as file:
        try:
            reader = await pool.run(
                lambda: DocumentReader(
                    file.source,
                    on_error=options.on_error,
                    fields=fields,
                    reading=options.reading,
                    partitioned=partitioned,
                    tokenizer=tokenizer,
                )
            )
        except SourceError as error:
            raise SourceError(file.said(error)) from error
        work = DocumentImport(
            name,
            reader,
            file,
            services.writer,
            services.readable,
            pool,
            services.limits,
            on_error=options.on_error,
            cuts=options.reading.split is not None,
            timeout_seconds=services.settings.request_timeout_seconds,
        )
        try:
            async with aclosing(work.progress()) as progress:
                async for line in progress:
                    yield line
        finally:
            await asyncio.shield(asyncio.wrap_future(pool.submit(work.close)))


def _body(line: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "http.response.body", "body": orjson.dumps(line) + b"\n", "more_body": True}


def _preview_record(preview: Preview, options: ImportRequest) -> dict[str, Any]:
    split = options.reading.split
    return {
        "columns": [
            {"name": column.name, "samples": column.samples, "type": column.type}
            for column in preview.columns
        ],
        "options": {
            "text_field": preview.text,
            "title_field": preview.title,
            "id_field": preview.id,
            "generate_ids": preview.id is None,
            "encoding": preview.encoding,
            "delimiter": preview.delimiter,
            "split": None if split is None else split.kind,
        },
        "documents": [document_record(document) for document in preview.documents],
        "skipped": preview.skipped,
        "reasons": list(preview.skips),
        "problem": preview.problem,
    }
