"""Routes that the edge may call directly: one body, a fixed path, and nothing else that is read of a request.

FastAPI describes them and judges what is wrong. What is right, as nearly every request is, needs none of its
layers: its body is parsed and checked as the route checks it, and the handler is called. They take a third
of the event loop's time of a search. Of a route that is relayed, threads do all of that, so that the loop has
no more to do than to read the request and to write the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping
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
from service.load.relay import relay
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
    relayed: bool

    async def answer(self, body: bytes, request: Request) -> Response | None:
        """What the handler answers; None for what FastAPI is to judge, or has a thread of its own.

        Raises what the handler raises.
        """
        if not body or len(body) > LARGE_BYTES or not is_json(header(request.scope, b"content-type")):
            return None
        runtime: Runtime = request.app.state.runtime
        deadline = _deadline(request.scope, runtime.settings.request_timeout_seconds)
        if deadline is None:
            return None
        if not self.relayed:
            return await self._handled(self._checked(body, runtime), request, runtime, deadline)
        return await relay(self._in_threads(body, request, runtime, deadline), deadline)

    async def _in_threads(
        self, body: bytes, request: Request, runtime: Runtime, deadline: Deadline
    ) -> Response | None:
        # Of the threads that look at the collections' files, which is what a search does next.
        value = await runtime.collections.looking_pool.run(self._checked, body, runtime)
        return await self._handled(value, request, runtime, deadline)

    def _checked(self, body: bytes, runtime: Runtime) -> Any:
        """The body as the handler takes it; None where something is wrong."""
        try:
            return self.check.checked(loads(body), runtime.limits)
        except (orjson.JSONDecodeError, RequestValidationError):
            return None

    async def _handled(
        self, value: Any, request: Request, runtime: Runtime, deadline: Deadline
    ) -> Response | None:
        if value is None:
            return None
        request.scope["route"] = self.route
        given = {"body": value, "request": request, "services": runtime, "deadline": deadline}
        return await self.handler(**{name: given[name] for name in self.names})


def direct_routes(
    routes: Iterable[BaseRoute], relayed: Container[Handler] = ()
) -> Mapping[tuple[str, str], DirectRoute]:
    """Those among all routes, by method and path. relayed: handlers whose every wait is for a thread."""
    found: dict[tuple[str, str], DirectRoute] = {}
    for route in routes:
        if not isinstance(route, JsonRoute) or route.body_field is None or "{" in route.path:
            continue
        names = frozenset(route.endpoint.__annotations__) - {"return"}
        dependencies = {each.name for each in route.dependant.dependencies}
        others = (route.dependant.query_params, route.dependant.header_params, route.dependant.cookie_params)
        if names <= ARGUMENTS and None not in dependencies and not any(others):
            check = BodyCheck(route.body_field.field_info.annotation)
            direct = DirectRoute(route, route.endpoint, names, check, route.endpoint in relayed)
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
