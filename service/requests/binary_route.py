"""Routes whose bodies are not JSON, beside routes of the same path and method whose bodies are."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from starlette.routing import Match

from tercet.service.http.asgi import Scope, header
from tercet.service.http.query_parameters import QueryParameters
from tercet.service.requests.path_route import PathRoute

BINARY_TYPES = ("application/x-safetensors", "application/octet-stream")


class BinaryRoute(PathRoute):
    """Matches only requests whose body is binary by its type; to be added before the route for others."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """None where the type is another one."""
        if not is_binary(header(scope, b"content-type")):
            return Match.NONE, {}
        return super().matches(scope)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of this route."""
        handle, parameters = super().get_route_handler(), QueryParameters(self)

        async def handle_binary(request: Request) -> Response:
            parameters.check(request)
            return await handle(request)

        return handle_binary


def is_binary(content_type: str | None) -> bool:
    """Whether a body of this type is binary."""
    return (content_type or "").partition(";")[0].strip().lower() in BINARY_TYPES
