"""What the routes share: their services, their documentation of errors, their JSON answers."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Request, Response

from service.http.auth import require_write
from service.http.json_route import JsonRoute
from service.runtime import Runtime
from service.schemas.errors import ErrorResponse

DESCRIPTIONS = {
    400: "The request is malformed.",
    401: "A key is needed, or not known.",
    403: "The key may only read.",
    404: "There is no such thing.",
    409: "It conflicts with what exists.",
    413: "The request is too large.",
    422: "A value is not valid; `param` names the field.",
    429: "Too much work waits; `Retry-After` says how many seconds to wait.",
    503: "The server is not ready.",
}


async def _runtime(request: Request) -> Runtime:
    runtime: Runtime = request.app.state.runtime
    return runtime


Services = Annotated[Runtime, Depends(_runtime)]
WRITE = [Depends(require_write)]


def router(tag: str) -> APIRouter:
    """A group of routes."""
    return APIRouter(tags=[tag], route_class=JsonRoute)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of a route's error answers."""
    return {status: {"model": ErrorResponse, "description": DESCRIPTIONS[status]} for status in statuses}


def json_response(value: Any, status: int = 200) -> Response:
    """A small JSON answer, without validation of what we made ourselves."""
    return Response(orjson.dumps(value), status, media_type="application/json")
