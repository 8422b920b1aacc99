"""What the routes share: services, deadlines, documentation of errors, JSON answers, limits, weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Depends, Header, Query, Request, Response, params
from pydantic import BaseModel

from tercet.index.candidates import Weights
from tercet.index.fusion import weights_preset
from tercet.models.representations import Float32
from tercet.service.collections.positions import Position
from tercet.service.encoding.ready_representations import unpacked
from tercet.service.encoding.service import EncodingService
from tercet.service.exceptions import InvalidRequestError, NotFoundError
from tercet.service.keys.access import Access
from tercet.service.load.deadlines import Deadline
from tercet.service.requests.json_route import JsonRoute
from tercet.service.requests.keys import access_of, require_admin, require_write
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import POSITION_PATTERN
from tercet.service.schemas.errors import REFERENCE, ErrorResponse
from tercet.service.schemas.search import PackedVectors, PresetName, SearchWeightsRequest, WeightsRequest

DESCRIPTIONS = {
    400: "The request is malformed.",
    401: "A key is needed, or not known.",
    403: "The key may not do this, or the request comes by a foreign name or from a foreign page.",
    404: "There is no such thing.",
    409: "It conflicts with what exists.",
    413: "The request is too large.",
    422: "A value is not valid; the message names the field.",
    424: "The encoder failed.",
    429: "Too much work waits; `Retry-After` says how many seconds to wait.",
    503: "The server is not ready.",
    507: "The server's disk is full.",
}
OVERLOADED = 429
Numbers = TypeVar("Numbers")
RETRY_AFTER = {"description": "Seconds to wait.", "schema": {"type": "integer", "minimum": 1}}
# What a request may be answered before its route's handler runs; operations do without keys or limits on
# requests in work.
EDGE = (400, 401, 403, 413, 422, OVERLOADED)


async def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


Services = Annotated[Runtime, Depends(_runtime)]


async def _deadline(
    request: Request,
    timeout_seconds: Annotated[
        float | None,
        Header(
            alias="X-Request-Timeout",
            gt=0,
            allow_inf_nan=False,
            description="Seconds, as a decimal, after which the answer is of no use: work that has not begun "
            "by then is dropped, and the answer is 429 with the code `deadline_exceeded`. The server's own "
            "limit (setting `request_timeout_seconds`) holds where it is shorter or none is given.",
        ),
    ] = None,
) -> Deadline:
    runtime: Runtime = request.app.state.runtime
    longest = runtime.settings.request_timeout_seconds
    seconds = longest if timeout_seconds is None else timeout_seconds
    return Deadline(request.state.arrived + min(seconds, longest))


TimeLimit = Annotated[Deadline, Depends(_deadline)]
WRITE = [Depends(require_write)]
ADMIN = [Depends(require_admin)]


async def _access(request: Request) -> Access:
    return access_of(request)


Allowed = Annotated[Access, Depends(_access)]
"""What whoever asks may do."""


def router(
    tag: str,
    *statuses: int,
    shape: type[BaseModel] = ErrorResponse,
    dependencies: Sequence[params.Depends] = (),
) -> APIRouter:
    """A group of routes.

    statuses: of errors that any of them may answer; by default `EDGE` and 503. shape: of these errors.
    """
    documented = errors(*(statuses or (*EDGE, 503)), shape=shape)
    return APIRouter(
        tags=[tag],
        route_class=JsonRoute,
        responses=documented,
        dependencies=dependencies,
        generate_unique_id_function=lambda route: route.name,  # what generated clients call an operation
    )


def errors(*statuses: int, shape: type[BaseModel] = ErrorResponse) -> dict[int | str, dict[str, Any]]:
    """The documentation of error answers: of a route, those that only its handler gives.

    They name their shape alone: FastAPI would make a model of its own for each of five hundred.
    """
    schema = {"$ref": REFERENCE.format(model=shape.__name__)}
    return {
        status: {
            "description": DESCRIPTIONS[status],
            "content": {"application/json": {"schema": schema}},
            **({"headers": {"Retry-After": RETRY_AFTER}} if status == OVERLOADED else {}),
        }
        for status in statuses
    }


def json_response(value: Any, status: int = 200) -> Response:
    """A small JSON answer, without validation of what we made ourselves."""
    return Response(orjson.dumps(value), status, media_type="application/json")


async def encoder_named(services: Runtime, model: str | None) -> EncodingService:
    """The encoder that a field of a request names, by default the server's own.

    Raises NotFoundError, and what `EncoderShelf.named` raises.
    """
    encoding = await services.encoders.named(model)
    if encoding is None:
        known = ", ".join(await services.encoders.names())
        raise NotFoundError(
            f"there is no model {model!r:.100}; this server has {known} (GET /v1/models)",
            "model_not_found",
            "model",
        )
    return encoding


MinPosition = Annotated[
    str | None,
    Query(
        pattern=POSITION_PATTERN,
        description="A position of the collection, from the answer to a write: the answer has what was "
        "written up to it, or is an error once the time of the request is over.",
    ),
]


async def reached(services: Runtime, name: str, position: Position | None, deadline: Deadline) -> None:
    """Waits until a collection has what was written up to a position, where one is given.

    Raises InvalidRequestError, and as `CollectionRegistry.reach`.
    """
    if position is not None:
        services.require_open()
        writes = services.writes("min_position, a position of writes,")
        await writes.reach(name, writes.position_of(position, "min_position"), deadline)


def check_characters(texts: Sequence[str], limit: int, param: str) -> None:
    """Raises InvalidRequestError naming the first text that is too long."""
    for position, text in enumerate(texts):
        if len(text) > limit:
            where = f"{param}.{position}" if len(texts) > 1 else param
            raise InvalidRequestError(
                f"{where} has {len(text)} characters; the limit is {limit} (setting max_characters)",
                where,
                "too_many_characters",
            )


def weights_of(requested: WeightsRequest | PresetName) -> Weights:
    """A preset's weights, or those given. Raises InvalidRequestError where all are 0."""
    if isinstance(requested, str):
        return weights_preset(requested)
    bm25 = requested.bm25 if isinstance(requested, SearchWeightsRequest) else None
    dense, sparse, colbert = (
        1.0 if weight is None else weight for weight in (requested.dense, requested.sparse, requested.colbert)
    )
    weights = Weights(dense, sparse, colbert, bm25 or 0.0)
    if not any(asdict(weights).values()):
        raise InvalidRequestError("weights are all 0, so nothing would be scored; raise one", "weights")
    return weights


def numbers_of(given: Numbers | PackedVectors, axes: int, param: str) -> Numbers | Float32:
    """Lists as they are, packed vectors as an array. Raises InvalidRequestError as `unpacked`."""
    return unpacked(given.data, given.shape, axes, param) if isinstance(given, PackedVectors) else given
