"""Routes whose path parameters may hold slashes."""

from __future__ import annotations

from fastapi.routing import APIRoute
from starlette.routing import Match

from tercet.service.http.asgi import Scope
from tercet.service.http.paths import with_slashes


class PathRoute(APIRoute):
    """A slash that was written as %2F is text of a parameter, and never parts a path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is this route's, and its parameters."""
        match, child_scope = super().matches(scope)
        if "path_params" in child_scope:
            child_scope["path_params"] = with_slashes(child_scope["path_params"])
        return match, child_scope
