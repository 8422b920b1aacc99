"""Routes that the edge may call directly: one body, and little else that is read of a request.

A body of JSON comes to a fixed path without a query, a binary one to a path with the name of a collection.
FastAPI describes the routes and judges what is wrong. What is right, as nearly every request is, needs none
of its layers: its body is parsed and checked as the route checks it, and the handler is called. They take a
third of the event loop's time of a search. Of a route that is relayed, threads do all of that, so that the
loop has no more to do than to read the request and to write the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Coroutine, Iterable
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from tercet.index.documents.json_values import loads
from tercet.service.http.asgi import Scope, header
from tercet.service.http.json_body import LARGE_BYTES
from tercet.service.http.query_parameters import QueryValues
from tercet.service.load.deadlines import Deadline
from tercet.service.load.relay import relay
from tercet.service.requests.binary_route import BinaryRoute, is_binary
from tercet.service.requests.body_check import BodyCheck
from tercet.service.requests.json_route import JsonRoute, is_json
from tercet.service.requests.keys import access_of
from tercet.service.runtime import Runtime
from tercet.service.schemas.base import NAME_PATTERN

Handler = Callable[..., Coroutine[Any, Any, Response]]
ARGUMENTS = {"body", "request", "services", "deadline"}
NAME = re.compile(NAME_PATTERN)
NAMED = re.compile(r"(.*)/{name}/(\w+)")  # the path of a binary route


@dataclass(frozen=True, slots=True)
class DirectRoute:
    """A route answered without FastAPI. check: of a body of JSON; None where the handler takes the bytes."""

    route: APIRoute
    handler: Handler
    names: frozenset[str]
    check: BodyCheck | None
    query: QueryValues
    relayed: bool

    async def answer(self, body: bytes, request: Request, name: str | None) -> Response | None:
        """What the handler answers; None for what FastAPI is to judge, or has a thread of its own.

        name: the collection's, where the path has one. Raises what the handler raises.
        """
        runtime: Runtime = request.app.state.runtime
        deadline = _deadline(request.scope, runtime.settings.request_timeout_seconds)
        query = self.query.of(request.scope["query_string"])
        if deadline is None or query is None or not self._takes(body, request.scope):
            return None
        if name is not None:
            access_of(request).require_name(name)
        given = {"name": name, "request": request, "services": runtime, "deadline": deadline, **query}
        work = self._answered(body, given, runtime)
        return await (relay(work, deadline) if self.relayed else work)

    def _takes(self, body: bytes, scope: Scope) -> bool:
        content_type = header(scope, b"content-type")
        if self.check is None:
            return is_binary(content_type)
        return 0 < len(body) <= LARGE_BYTES and is_json(content_type)

    async def _answered(self, body: bytes, given: dict[str, Any], runtime: Runtime) -> Response | None:
        value: Any = body
        if self.check is not None and self.relayed:
            # Of the threads that look at the collections' files, which is what a search does next.
            value = await runtime.collections.looking_pool.run(_checked, self.check, body, runtime)
        elif self.check is not None:
            value = _checked(self.check, body, runtime)
        if value is None:
            return None
        given["body"] = value
        given["request"].scope["route"] = self.route
        return await self.handler(**{name: given[name] for name in given.keys() & self.names})


class DirectRoutes:
    """The routes of an application that are answered without FastAPI."""

    def __init__(self, routes: Iterable[BaseRoute], relayed: Container[Handler] = ()) -> None:
        """routes: all that it has; relayed: handlers whose every wait is for a thread."""
        self.fixed: dict[tuple[str, str], DirectRoute] = {}
        self.named: dict[tuple[str, str, str], DirectRoute] = {}
        for route in routes:
            if isinstance(route, JsonRoute) and route.body_field is not None and "{" not in route.path:
                check = BodyCheck(route.body_field.field_info.annotation)
                direct = _direct(route, ARGUMENTS, check, relayed)
                if direct is not None and not route.dependant.query_params:
                    self.fixed |= {(method, route.path): direct for method in route.methods or ()}
            elif isinstance(route, BinaryRoute) and (path := NAMED.fullmatch(route.path)):
                direct = _direct(route, ARGUMENTS | {"name"}, None, relayed)
                if direct is not None:
                    self.named |= {(method, path[1], path[2]): direct for method in route.methods or ()}

    def find(self, scope: Scope) -> tuple[DirectRoute, str | None] | None:
        """The route of a request, and the collection's name in its path; None where FastAPI is to answer."""
        method, path = scope["method"], scope["path"]
        route = self.fixed.get((method, path))
        if route is not None:
            return None if scope["query_string"] else (route, None)
        before, _, operation = path.rpartition("/")
        folder, _, name = before.rpartition("/")
        route = self.named.get((method, folder, operation))
        return None if route is None or not NAME.fullmatch(name) else (route, name)


def _direct(
    route: APIRoute, arguments: set[str], check: BodyCheck | None, relayed: Container[Handler]
) -> DirectRoute | None:
    """None where its handler takes other arguments, its query's aside, or something else is read for it."""
    names = frozenset(route.endpoint.__annotations__) - {"return"}
    dependencies = {dependency.name for dependency in route.dependant.dependencies}
    query = QueryValues(route.dependant.query_params)
    others = (route.dependant.path_params, route.dependant.header_params, route.dependant.cookie_params)
    if not names - query.names <= arguments or None in dependencies or any(others):
        return None
    # A handler that is a relay by itself is part of this one.
    return DirectRoute(route, unwrap(route.endpoint), names, check, query, route.endpoint in relayed)


def _checked(check: BodyCheck, body: bytes, runtime: Runtime) -> Any:
    """The body as the handler takes it; None where something is wrong."""
    try:
        return check.checked(loads(body), runtime.limits)
    except (orjson.JSONDecodeError, RequestValidationError):
        return None


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
