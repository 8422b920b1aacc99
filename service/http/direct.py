"""Routes that the edge may call directly: one body, a fixed path, and nothing else that is read of a request.

FastAPI describes them and judges what is wrong. What is right, as nearly every request is, needs none of its
layers: its body is parsed and checked as the route checks it, and the handler is called. They take a third
of the event loop's time of a search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from index.documents.json_values import loads
from service.http.asgi import Scope, header
from service.http.body_check import BodyCheck
from service.http.json_body import LARGE_BYTES
from service.http.json_route import JsonRoute, is_json
from service.load.deadlines import Deadline
from service.runtime import Runtime

Handler = Callable[..., Coroutine[Any, Any, Response]]
ARGUMENTS = {"body", "request", "services", "deadline"}


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """One of them."""

    route: APIRoute
    handler: Handler
    names: frozenset[str]
    check: BodyCheck

    def arguments(self, scope: Scope, body: bytes, request: Request) -> dict[str, Any] | None:
        """What to call the handler with; None for what FastAPI is to judge, or large enough for a thread."""
        if not body or len(body) > LARGE_BYTES or not is_json(header(scope, b"content-type")):
            return None
        runtime: Runtime = scope["app"].state.runtime
        deadline = _deadline(scope, runtime.settings.request_timeout_seconds)
        if deadline is None:
            return None
        try:
            value = self.check.checked(loads(body), runtime.limits)
        except (orjson.JSONDecodeError, RequestValidationError):
            return None
        scope["route"] = self.route
        given = {"body": value, "request": request, "services": runtime, "deadline": deadline}
        return {name: given[name] for name in self.names}


def direct_routes(routes: Iterable[BaseRoute]) -> Mapping[tuple[str, str], DirectRoute]:
    """Those among all routes, by method and path."""
    found: dict[tuple[str, str], DirectRoute] = {}
    for route in routes:
        if not isinstance(route, JsonRoute) or route.body_field is None or "{" in route.path:
            continue
        names = frozenset(route.endpoint.__annotations__) - {"return"}
        dependencies = {each.name for each in route.dependant.dependencies}
        others = (route.dependant.query_params, route.dependant.header_params, route.dependant.cookie_params)
        if names <= ARGUMENTS and None not in dependencies and not any(others):
            check = BodyCheck(route.body_field.field_info.annotation)
            direct = DirectRoute(route, route.endpoint, names, check)
            found |= {(method, route.path): direct for method in route.methods or ()}
    return found


def _deadline(scope: Scope, longest_seconds: float) -> Deadline | None:
    """None where the header is no time."""
    given = header(scope, b"x-request-timeout")
    seconds = longest_seconds
    if given is not None:
        try:
            seconds = float(given)
        except ValueError:
            return None
        if not 0 < seconds < math.inf:
            return None
    return Deadline(scope["state"]["arrived"] + min(seconds, longest_seconds))
