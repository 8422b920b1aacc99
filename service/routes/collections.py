"""Collections: list, look, create, delete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Response

from tercet.index.bm25.languages import DEFAULT_LANGUAGE
from tercet.index.catalog.names import check_title
from tercet.index.documents.metadata import FieldType
from tercet.index.errors import (
    CollectionAliasedError,
    InvalidDocumentError,
    InvalidFieldError,
    InvalidNameError,
)
from tercet.index.windows.settings import WindowChoice, WindowSettings, default_overlap
from tercet.ingest.document_windows import cutter_for
from tercet.ingest.target import chosen, settings_for
from tercet.models.errors import UnsupportedWindowError
from tercet.service.answers.statistics import statistics_record
from tercet.service.collections.readable import CollectionDescription
from tercet.service.collections.served import Catalogue
from tercet.service.exceptions import InvalidRequestError
from tercet.service.routes.common import (
    ADMIN,
    Allowed,
    Services,
    encoder_named,
    errors,
    json_response,
    router,
)
from tercet.service.routes.pages import Paged
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import NAME_PATTERN
from tercet.service.schemas.collections import (
    CollectionList,
    CollectionRequest,
    CollectionResponse,
    FieldsRequest,
    StatisticsResponse,
    WindowRequest,
)
from tercet.service.search.answers import sides_record


async def _name(
    access: Allowed,
    name: Annotated[str, Path(pattern=NAME_PATTERN, description="A collection's name, or an alias.")],
) -> str:
    access.require_name(name)
    return name


Name = Annotated[str, Depends(_name)]
"""The collection that a path names, which the key may use."""

EMPTY = CollectionRequest.model_validate({})

routes = router("collections")


@routes.get("/collections", response_model=CollectionList)
async def list_collections(services: Services, access: Allowed, page: Paged) -> Response:
    """Collections that the key may use, in order of name."""
    names = await services.pools.operations.run(services.collections.names)
    seen = [name for name in names if access.sees(name) and name > (page.after or "")]
    shown, more = page.of(seen, str)
    descriptions = await services.pools.operations.run(services.collections.list, shown)
    return json_response({"collections": list(map(collection_record, descriptions)), **more})


@routes.get("/collections/{name}", response_model=CollectionResponse, responses=errors(404, 409, 422))
async def get_collection(name: Name, services: Services) -> Response:
    """A collection's settings and state. An alias of several shows what they share, under its own name."""
    return json_response(
        collection_record(await services.pools.operations.run(services.collections.describe, name))
    )


@routes.get("/collections/{name}/stats", response_model=StatisticsResponse, responses=errors(404, 409, 422))
async def get_statistics(name: Name, services: Services) -> Response:
    """What a collection holds: documents, segments, bytes, and writes that are not published yet."""

    return json_response(await services.pools.operations.run(_statistics, services.readable, name))


def _statistics(collections: Catalogue, name: str) -> dict[str, Any]:
    own = collections.aliases.collection_of(name)
    return statistics_record(own, collections.statistics(own))


@routes.put(
    "/collections/{name}",
    status_code=201,
    response_model=CollectionResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def create_collection(
    name: Name, services: Services, body: CollectionRequest | None = None
) -> Response:
    """Create an empty collection for this server's own encoder, or for another one that it opens.

    A name that a collection or an alias has already is a conflict, 409.
    """
    wanted = body or EMPTY
    if wanted.bm25_language is not None and not wanted.bm25:
        raise InvalidRequestError("bm25_language goes with bm25: true; give both, or none", "bm25_language")
    if wanted.title is not None:
        try:
            check_title(wanted.title)
        except InvalidNameError as error:
            raise InvalidRequestError(str(error), "title") from error
    encoding = await encoder_named(services, wanted.model)
    info = await encoding.info_of(wanted.adapter, name)
    try:
        settings = settings_for(
            name,
            info,
            {
                "dense_kind": wanted.dense_kind or "auto",
                "dense_memory_bytes": wanted.dense_memory_bytes,
                "token_pooling": wanted.token_pooling or 1,
                "fields": wanted.fields or {},
                **chosen(
                    {
                        "window": _window(wanted.window),
                        "lexical": wanted.lexical,
                        "token_codec": wanted.token_codec,
                        "title": wanted.title,
                    }
                ),
                "bm25": bool(wanted.bm25),
                "bm25_language": wanted.bm25_language or DEFAULT_LANGUAGE,
                "partitioned": bool(wanted.partitioned),
            },
        )
    except InvalidNameError as error:
        raise InvalidRequestError(str(error), "fields") from error
    except ValueError as error:
        # Messages begin with the setting that they are about, or are about how token vectors are kept.
        named = str(error).partition(" ")[0]
        param = named if named in CollectionRequest.model_fields else "token_codec"
        raise InvalidRequestError(str(error), param) from error
    try:
        cutter_for(settings, encoding.tokenizer)
    except UnsupportedWindowError as error:
        raise InvalidRequestError(str(error), f"window.{error.setting}", "unsupported") from error
    create = services.writes("creating collections").create
    return json_response(
        collection_record(await services.pools.operations.run(create, name, settings)),
        201,
    )


@routes.post(
    "/collections/{name}/fields",
    response_model=CollectionResponse,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def declare_fields(name: Name, body: FieldsRequest, services: Services) -> Response:
    """Declare more metadata fields, over what is stored; those that are declared already stay.

    Documents are written and searched meanwhile. Where a stored document has a value of another type than its
    field's, the error names it, and nothing is declared. During a build or restore that is a conflict, 409.
    """
    return json_response(
        collection_record(await services.pools.operations.run(_declare, services, name, body.fields))
    )


def _declare(services: Runtime, name: str, fields: Mapping[str, FieldType]) -> CollectionDescription:
    with services.writes().writing(services.collections.aliases.collection_of(name)) as live:
        with about_fields():
            live.declare(fields)
        return services.collections.describe(live.settings.name)


@contextmanager
def about_fields() -> Iterator[None]:
    """Within it, what is wrong with fields that are declared names the field of the request."""
    try:
        yield
    except InvalidFieldError as error:
        raise InvalidRequestError(str(error), _of_fields(error.field), "invalid_field") from error
    except InvalidNameError as error:
        raise InvalidRequestError(str(error), "fields", "invalid_name") from error
    except InvalidDocumentError as error:  # of a stored one
        field = None if error.part is None else error.part.removeprefix("metadata.")
        raise InvalidRequestError(str(error), _of_fields(field), "invalid_document") from error


def _of_fields(field: str | None) -> str:
    return "fields" if field is None else f"fields.{field}"


@routes.delete(
    "/collections/{name}",
    status_code=204,
    responses=errors(404, 409, 422, 507),
    dependencies=ADMIN,
)
async def delete_collection(name: Name, services: Services, access: Allowed) -> Response:
    """Delete a collection and all it holds. While an alias means it, that is a conflict, 409."""
    try:
        await services.pools.operations.run(services.writes("deleting collections").delete, name)
    except CollectionAliasedError:
        aliases = await services.pools.operations.run(services.collections.aliases.all)
        if all(access.sees(alias) for alias, meant in aliases.items() if name in meant):
            raise
        raise CollectionAliasedError(
            f"collection {name!r} has aliases that this key may not see; who may has to delete them first"
        ) from None
    return Response(status_code=204)


def _window(wanted: WindowRequest | Literal[False] | None) -> WindowChoice:
    if not isinstance(wanted, WindowRequest):
        return wanted
    overlap = default_overlap(wanted.tokens) if wanted.overlap is None else wanted.overlap
    try:
        return WindowSettings(wanted.tokens, overlap)
    except ValueError as error:
        raise InvalidRequestError(str(error), "window.overlap") from error


def collection_record(description: CollectionDescription) -> dict[str, Any]:
    settings, defaults = description.settings, description.defaults
    collections = description.collections
    return {
        "name": settings.name,
        **({} if collections is None else {"collections": collections}),
        "title": settings.title,
        "snapshot": description.snapshot,
        "documents": description.documents,
        "model": settings.encoder,
        "adapter": settings.adapter,
        "fingerprint": settings.fingerprint,
        "dense_dimension": settings.dense_dimension,
        "colbert_dimension": settings.colbert_dimension,
        "vocabulary_size": settings.vocabulary_size,
        "dense_kind": settings.dense_kind,
        "dense_memory_bytes": settings.dense_memory_bytes,
        "token_codec": settings.token_codec,
        "token_pooling": settings.token_pooling,
        "lexical": settings.lexical,
        "bm25": settings.bm25,
        "bm25_language": settings.bm25_language if settings.bm25 else None,
        "window": settings.window,
        "fields": settings.own_fields,
        "partitioned": settings.partitioned,
        "defaults": defaults
        and {
            "weights": sides_record(defaults.weights, bm25=settings.bm25),
            "candidates": sides_record(defaults.candidates, bm25=settings.bm25),
        },
    }
