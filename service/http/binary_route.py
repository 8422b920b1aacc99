"""Routes whose bodies are not JSON, beside routes of the same path and method whose bodies are."""

from __future__ import annotations

from fastapi.routing import APIRoute
from starlette.routing import Match

from service.http.asgi import Scope, header

BINARY_TYPES = ("application/x-safetensors", "application/octet-stream")


class BinaryRoute(APIRoute):
    """Matches only requests whose body is binary by its type; to be added before the route for others."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """None where the type is another one."""
        given = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
        if given not in BINARY_TYPES:
            return Match.NONE, {}
        return super().matches(scope)
